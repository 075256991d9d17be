import { listQueues } from '../../admin/queues.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'
import { queueTable } from '../queue-table.ts'

/** The queues, what waits in them, and whether they are paused. */
export const queuesList = command({
  name: 'queues list',
  description: 'List the queues: what waits, how long, what executes, what is paused',
  args: {},
  async run({ args, output }) {
    await using opened = await openDatabase(args)
    const queues = await listQueues(opened.database)
    output.print(queues, () => queueTable(queues, output))
  },
})
