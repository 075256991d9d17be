import { runRecipe } from '../stage/run-recipe.ts'
import { createInvoices, numberOf, reserveLabels, SEQUENCE, writeInvoice } from './invoices.ts'

await runRecipe(async ({ app, quick, unguarded, say, check }) => {
  // A run before may have used the same database.
  await app.sequences.delete(SEQUENCE)
  await createInvoices(app)
  await app.transaction((tx) => tx.query('truncate numbered_invoice'))
  const orders = quick ? 60 : 300

  const answers = await Promise.allSettled(
    Array.from({ length: orders }, async (_, n) => {
      // Unguarded: the number is drawn before the transaction, which may then come to nothing.
      if (unguarded) await app.sequences.next(SEQUENCE)
      return await writeInvoice(app, String(n), () => {
        if (n % 3 === 0) throw new Error('the card was refused')
      })
    }),
  )
  const { rows } = await app.transaction((tx) =>
    tx.query<{ number: string }>(
      'select number::text from numbered_invoice order by numbered_invoice.number',
    ),
  )
  const numbers = rows.map(({ number }) => Number(number))
  const written = answers.filter(({ status }) => status === 'fulfilled').length
  say(`${orders} orders at once, ${orders - written} rolled back, numbers ${numbers[0]} to ${numbers.at(-1)}`)
  check('each order that was written has a number', written > 0 && numbers.length === written)
  check(
    'there is no gap, whatever was rolled back',
    numbers.every((number, n) => number === 20_001 + n),
  )

  const asked = await Promise.all(Array.from({ length: 5 }, () => numberOf(app, '42')))
  say(`order 42, asked five times: ${asked.join(' ')}`)
  check('a repeated request gets the same number', new Set(asked).size === 1)
  const other = await numberOf(app, '43')
  check('another order gets the next one', other === (asked[0] ?? 0n) + 1n)

  const ranges = await Promise.all([reserveLabels(app, 100), reserveLabels(app, 100)])
  const [low, high] = ranges.toSorted((a, b) => Number(a.first - b.first))
  say(`labels ${ranges.map(({ first, last }) => `${first}..${last}`).join(' and ')}`)
  check(
    'ranges are whole, and apart',
    low !== undefined && low.last - low.first === 99n && high?.first === low.last + 1n,
  )
})
