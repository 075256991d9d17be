/** What `help TOPIC` shows. */
export const topics: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    scripts: [
      'An input that is no command is a script. It runs on the server in one transaction: all of it happens, or nothing.',
      '',
      '  set KEY VALUE [nx | xx | cmp VALUE | cmprev N] [ex MS] [norev]      r0 set, or r0 not set',
      '  get KEY   exists KEY   get KEY at REVISION   get KEY as of MS       r0 value, or not found',
      '  delete KEY   extend KEY MS                                          r1 deleted, r0 extended',
      '  get by bucket KEY   scan by prefix KEY                              a line for each key',
      '  let NAME = …   if … then … else … end   for NAME in … do … end',
      '  return VALUE   throw VALUE   sleep MS   begin … commit … end',
      '',
      'eset, eget, edelete, eexists, eextend and escan are the same for ephemeral keys. Statements may be parted by ";".',
      'A key with other characters than letters, digits and "_" stands in quotes of any kind: set `jobs/1` "done".',
      'A script that is not complete, ends with a let, or with "\\" at the end of a line, goes on in the next one; Ctrl-C gives it up.',
    ],
    answers: [
      'r3 set         the key was written; r3 is its revision, which grows with each write and never comes again',
      'r3 not set     a condition did not hold: nothing changed, and r3 is the revision it has',
      'not found      there is no such key',
      'f7 locked      the lock is yours; f7 is the fencing token, larger than that of any lock given before',
      'busy           somebody else has the lock',
      'lost           the lock was yours, and its time is over or somebody took it',
      '0.8 ms         how long the answer took, with the way there and back',
    ],
    locks: [
      'A lock is a lease: it frees itself after its time, 30,000 ms unless you say otherwise.',
      'Locks taken here belong to this shell. Taking one again gives the same token, and does not lengthen it: extend-lock does.',
      'All of them are released when the shell ends; if it is killed, they are free after their time.',
      'elock, eunlock and so on are for ephemeral locks, which a crash of the server frees.',
    ],
    params: [
      'param @name value sets a parameter; scripts use it as a key or value: set @name "x", get @name.',
      'Its value is always text: the rest of the line, or what stands in quotes.',
      'unparam @name forgets it; param alone shows all.',
    ],
    editing: [
      'Up and down go through what was typed; Tab completes words, commands, and names from the database.',
      'Ctrl-C clears the line, gives up what runs, or ends watch. Ctrl-D leaves.',
      'What was typed is kept in a file, unless it begins with a blank or holds what looks like a password.',
    ],
  }),
)
