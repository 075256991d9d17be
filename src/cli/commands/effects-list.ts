import { listEffects } from '../../admin/list-effects.ts'
import { at } from '../../admin/time-text.ts'
import { limits } from '../../base/limits.ts'
import { command, numberOption } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** A page of the ledger; without options, what waits for a decision. */
export const effectsList = command({
  name: 'effects list',
  description: 'List effects that wait for a decision, oldest first; or all in one state, or of one job',
  args: {
    state: {
      type: 'string',
      description: 'Those in this state: uncertain, intended, happened or open',
    },
    job: { type: 'string', valueHint: 'id', description: 'Those of this job, in any state' },
    limit: { type: 'string', valueHint: 'rows', description: 'Rows of a page: 1 to 1,000. Default: 50' },
    after: {
      type: 'string',
      valueHint: 'cursor',
      description: 'The next page: the cursor that the page before gave',
    },
  },
  async run({ args, output }) {
    const { state, job: jobId, after } = args
    const limit = numberOption('--limit', args.limit, limits.pageRows)
    await using opened = await openDatabase(args)
    const page = await listEffects(opened.database, { state, jobId, limit, after })
    output.print(page, () => [
      ...output.table(
        page.effects,
        [
          { title: 'effect', value: (effect) => effect.name },
          { title: 'key', value: (effect) => effect.key },
          { title: 'tenant', value: (effect) => (effect.tenant === '' ? null : effect.tenant) },
          { title: 'state', value: (effect) => (effect.held ? 'under way' : effect.state) },
          { title: 'calls', value: (effect) => effect.calls, right: true },
          { title: 'intended', value: (effect) => at(effect.intendedAt) },
          { title: 'job', value: (effect) => effect.jobId },
          {
            title: 'jobs that ask',
            value: (effect) => (effect.askingJobs as readonly string[] | null)?.join(', '),
          },
        ],
        state === undefined && jobId === undefined ? 'nothing waits for a decision' : 'no effects',
      ),
      ...(page.next === null ? [] : [`more: --after ${page.next}`]),
    ])
  },
})
