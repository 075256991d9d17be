import type { Coordination } from '../../app/coordination.ts'
import { CliError } from '../cli-error.ts'
import type { ShellServices } from './services.ts'

/** What the shell works through, over a database. */
export function servicesOf({ sequences, locks }: Coordination): ShellServices {
  const later = () => {
    throw new CliError('keys and scripts are not here yet')
  }
  return {
    sequences,
    locks,
    keys: { list: later, revisions: later, watch: later },
    script: later,
  }
}
