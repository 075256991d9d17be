import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { defineApp } from 'holdfast'
import { tell } from '../stage/tell.ts'
import { register } from './registry.ts'

/** An instance of a service: it answers, and it is listed for as long as it lives. */

const [, , id = 'instance'] = process.argv
const app = defineApp({ name: id, database: process.env.DATABASE_URL, jobs: [], maxConnections: 2 })
const server = createServer((_, response) => void response.end(id))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo

const end = new AbortController()
process.once('SIGTERM', () => end.abort())
tell('listens', { port })
await register(app, 'mail', { id, host: '127.0.0.1', port }, end.signal)
await app.close()
process.exit(0)
