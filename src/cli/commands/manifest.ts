import { graphOf } from '../../admin/graph.ts'
import { manifestOf } from '../../admin/manifest.ts'
import { command } from '../command.ts'
import { manifestLines } from '../manifest-lines.ts'
import { openApp } from '../open-database.ts'
import { withAppFile } from '../with-app-file.ts'

/** What the application declares. Needs no database; fails if the declaration cannot work. */
export const manifest = command({
  name: 'manifest',
  description:
    'Print the jobs, producers, effects, resources and queues of the app, checked, in a form that can be compared',
  args: {
    file: { type: 'positional', required: false, description: 'App file' },
    graph: { type: 'boolean', description: 'Print a Mermaid flowchart of who enqueues and touches what' },
  },
  async run({ args, output }) {
    const app = await openApp(withAppFile(args))
    const declared = manifestOf(app.composition)
    if (args.graph) output.print({ mermaid: graphOf(declared).join('\n') }, () => graphOf(declared))
    else output.print(declared, () => manifestLines(declared, output))
    await app.close()
  },
})
