import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import app, { database } from './app.ts'
import { confirmOrders, type Pace } from './confirm-orders.ts'
import { disconnect } from './database.ts'
import { parseOrders } from './orders.ts'
import { createRandom } from './random.ts'
import { placeOrders } from './shop.ts'
import { tellSupervisor } from './tell-supervisor.ts'

// The producer process: reads the file of orders, places them, and confirms one after the other.
const { values } = parseArgs({
  options: {
    file: { type: 'string', default: 'orders.csv' },
    seed: { type: 'string', default: '1' },
    'orders-per-second': { type: 'string', default: '200' },
    'rollback-share': { type: 'string', default: '0.08' },
  },
})
process.once('disconnect', () => process.exit(1))
const pace: Pace = { ordersPerSecond: Number(values['orders-per-second']) }
process.on('message', (message: Pace) => Object.assign(pace, message))

const orders = parseOrders(await readFile(values.file, 'utf8'))
await placeOrders(database, orders)
tellSupervisor({ type: 'ready' })

await confirmOrders(orders, {
  random: createRandom(Number(values.seed)),
  pace,
  rollbackShare: Number(values['rollback-share']),
  tell: tellSupervisor,
})
tellSupervisor({ type: 'produced' })

await app.close()
await disconnect(database)
process.removeAllListeners('disconnect')
if (process.connected) process.disconnect()
