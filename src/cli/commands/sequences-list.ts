import { at } from '../../admin/time-text.ts'
import { limits } from '../../base/limits.ts'
import { command, numberOption } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** A page of sequences. */
export const sequencesList = command({
  name: 'sequences list',
  description: 'List sequences by name',
  args: {
    tenant: { type: 'string', description: "Whose sequences. Default: nobody's" },
    prefix: { type: 'string', description: 'Only names that begin so' },
    limit: { type: 'string', valueHint: 'rows', description: 'Rows of a page: 1 to 1,000. Default: 50' },
    after: {
      type: 'string',
      valueHint: 'cursor',
      description: 'The next page: the cursor that the page before gave',
    },
  },
  async run({ args, output }) {
    const { tenant, prefix, after } = args
    const limit = numberOption('--limit', args.limit, limits.pageRows)
    await using opened = await openDatabase(args)
    const page = await opened.coordination.sequences.list({ tenant, prefix, after, limit })
    output.print({ sequences: page.sequences, next: page.next ?? null }, () => [
      ...output.table(
        page.sequences,
        [
          { title: 'sequence', value: ({ name }) => name },
          { title: 'current', value: ({ current }) => current, right: true },
          { title: 'increment', value: ({ increment }) => increment, right: true },
          { title: 'max', value: ({ max }) => max, right: true },
          { title: 'draws', value: ({ revision }) => revision, right: true },
          { title: 'created', value: ({ createdAt }) => at(createdAt) },
        ],
        'no sequences',
      ),
      ...(page.next === undefined ? [] : [`more: --after ${page.next}`]),
    ])
  },
})
