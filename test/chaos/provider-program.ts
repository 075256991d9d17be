import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { listenToTest } from '../support/program.ts'
import { openHistory } from './history-log.ts'
import type { Call } from './provider.ts'

/**
 * The outside of a chaos run: acts once for each idempotency key, and notes every call and every question. Nothing is
 * done to it, so what it noted is what happened.
 *
 *     POST /call   { idempotencyKey, … }  → a receipt
 *     GET  /find?idempotencyKey=…         → the receipt, or 404
 *     POST /hold   { pid, withinMs }      → the next call of that process, taken and not answered; 404 if none came
 */

const settings = JSON.parse(process.env['CHAOS'] ?? '{}') as { readonly history: string }
const note = openHistory(settings.history)
listenToTest()

const receipts = new Map<string, { readonly receipt: string }>()
const holds = new Map<number, (call: Call) => void>()

const server = http.createServer((request, response) => {
  void answer(request).then(
    (body) => {
      // A call that is held has no answer: its caller is about to die.
      if (body === 'held') return
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body ?? {}))
    },
    () => response.destroy(),
  )
})
server.listen(0, '127.0.0.1', () => note('ready', { port: (server.address() as AddressInfo).port }))

async function answer(request: http.IncomingMessage): Promise<unknown> {
  const url = new URL(request.url ?? '', 'http://provider')
  if (url.pathname === '/find') return find(url.searchParams.get('idempotencyKey') ?? '')
  const body: unknown = JSON.parse(await textOf(request))
  if (url.pathname === '/hold') return await hold(body as { readonly pid: number; readonly withinMs: number })
  return take(body as Call)
}

function take(call: Call): unknown {
  const known = receipts.get(call.idempotencyKey)
  note('call', { ...call, deduplicated: known !== undefined })
  const receipt = known ?? { receipt: `receipt ${receipts.size + 1}` }
  receipts.set(call.idempotencyKey, receipt)
  const held = holds.get(call.pid)
  if (held === undefined) return receipt
  holds.delete(call.pid)
  held(call)
  return 'held'
}

function find(idempotencyKey: string): unknown {
  const receipt = receipts.get(idempotencyKey)
  note('find', { idempotencyKey, found: receipt !== undefined })
  return receipt
}

/** By process and not by slot: the next process of a slot would wait for its answer for ever. */
async function hold({ pid, withinMs }: { readonly pid: number; readonly withinMs: number }) {
  return await new Promise<Call | undefined>((resolve) => {
    const timer = setTimeout(() => {
      holds.delete(pid)
      resolve(undefined)
    }, withinMs)
    holds.set(pid, (call) => {
      clearTimeout(timer)
      resolve(call)
    })
  })
}

async function textOf(request: http.IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
