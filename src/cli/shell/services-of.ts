import type { Coordination } from '../../app/coordination.ts'
import { CliError } from '../cli-error.ts'
import type { ShellServices } from './services.ts'
import { textOf } from './text-of.ts'

/** What the shell works through, over a database. */
export function servicesOf({ sequences, locks, scripts }: Coordination): ShellServices {
  const later = () => {
    throw new CliError('keys are not here yet')
  }
  return {
    sequences,
    locks,
    keys: { list: later, revisions: later, watch: later },
    async script(text, params, { tenant, signal }) {
      const { type, revision, values } = await scripts.run(text, params, {
        ...(tenant === undefined ? {} : { tenant }),
        signal,
      })
      return {
        type,
        revision,
        values: values.map(({ key, value, revision: ofValue }) => ({
          key: key ?? undefined,
          value: textOf(value),
          revision: ofValue,
        })),
      }
    },
  }
}
