import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type CsvRecord, formatCsv, parseCsv } from './csv.ts'
import type { Random } from './random.ts'

/** An order as a customer typed it. Empty text means that an optional field was left out. */
export const orderSchema = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  company: z.string(),
  street: z.string(),
  city: z.string(),
  country: z.string(),
  article: z.string(),
  quantity: z.coerce.number().int(),
  note: z.string(),
})

export type Order = z.infer<typeof orderSchema>

export const orderFields = orderSchema.keyof().options

/** Makes `count` orders whose names and addresses are those that break naive software. */
export function makeOrders(count: number, random: Random): Order[] {
  return Array.from({ length: count }, (_, index) => makeOrder(index + 1, random))
}

export function formatOrders(orders: readonly Order[]): string {
  const rows = orders.map((order) => orderFields.map((field) => String(order[field])))
  return formatCsv([orderFields, ...rows])
}

/** Reads a file of `formatOrders`. Throws if a column is missing or a row does not fit. */
export function parseOrders(csv: string): Order[] {
  const [header, ...rows] = parseCsv(csv)
  if (!header) throw new Error('the file of orders is empty: it lacks even the header')
  return rows.map((row) => orderSchema.parse(toObject(header, row)))
}

function toObject(header: CsvRecord, row: CsvRecord): Record<string, string> {
  if (row.length !== header.length) {
    throw new Error(`order ${row[0]} has ${row.length} fields, the header has ${header.length}`)
  }
  return Object.fromEntries(header.map((field, index) => [field, row[index] ?? '']))
}

/** A short fingerprint of every field: tells whether an order arrived as it was typed. */
export function fingerprint(order: Order): string {
  const fields = orderFields.map((field) => order[field])
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, 16)
}

function makeOrder(number: number, random: Random): Order {
  const id = `2026-${String(number).padStart(5, '0')}`
  return {
    id,
    email: random.pick(emails)(id.replace('-', '.')),
    name: random.pick(names),
    company: random.chance(0.6) ? '' : random.pick(companies),
    street: `${random.pick(streets)} ${random.integer(1, 999)}`,
    city: random.pick(cities),
    country: random.pick(countries),
    article: random.pick(articles),
    quantity: random.integer(1, 12),
    note: random.chance(0.5) ? '' : random.pick(notes),
  }
}

const emails: readonly ((id: string) => string)[] = [
  (id) => `customer.${id}@mail.example`,
  (id) => `o'hara+shop=${id}@mail.example`,
  (id) => `order_${id}@bücher.example`,
  (id) => `"quoted.(${id})"@mail.example`,
  (id) => `søren.${id}@smørrebrød.example`,
  (id) => `注文.${id}@例え.example`,
]

const names = [
  'Ada Lovelace',
  "Siobhán O'Hara-Ní Dhomhnaill",
  'Joséphine "Jo" d’Éstaing, Jr.',
  'Jürgen Groß-Łukasiewicz',
  'Nguyễn Thị Ánh Tuyết',
  '山田 太郎',
  'דוד בן־גוריון',
  'عبد الرحمن بن محمد',
  'Zoë 🦊 Fuchs',
  '👩‍👩‍👧‍👦 The Martins',
  'Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘',
  'Null',
  'Robert\'); drop table "order";--',
  '=HYPERLINK("http://mail.example","click")',
  '<script>alert(1)</script>',
  'X',
  `Wolfeschlegelsteinhausen${'bergerdorff'.repeat(40)}`,
  'Tab\tand\\backslash\\n %s ${name} {{name}}',
] as const

const companies = [
  'Nord, Süd & Söhne GmbH',
  'The "Best" Company, Inc.',
  'ООО «Ромашка»',
  '株式会社サンプル',
  'A/S Æbleskiver',
  '\u202Eدار النشر\u202C',
] as const

const streets = [
  'Straße des 17. Juni',
  'Rue de l’Église, bât. "C",\nporte',
  'Av. Nuestra Señora de la Asunción, 3º izq.',
  'c/o Müller\r\nHinterhof, 2. Stock\r\nKastanienallee',
  '東京都千代田区千代田',
  'شارع الملك فيصل',
  `${'Very Long Road Name, '.repeat(30)}No.`,
  '  Leading and trailing  ',
] as const

const cities = [
  'Köln',
  'Kraków',
  'São Paulo',
  'Αθήνα',
  'Llanfairpwllgwyngyll',
  '‘s-Hertogenbosch',
  '北京',
  'תל אביב',
] as const
const countries = ['DE', 'PL', 'BR', 'GR', 'GB', 'NL', 'CN', 'IL', 'Côte d’Ivoire'] as const
const articles = [
  'Teapot, 1.2 l',
  'Screw 3/8" × 2"',
  'Crème brûlée torch',
  'Book: «Война и мир»',
  '🎁 Surprise',
  '"',
] as const

const notes = [
  'Please ring twice.',
  'Gift wrap: "Happy birthday, Zoë!"\nNo invoice inside.',
  'Line one\r\n.\r\nLine three after a lone dot', // the lone dot ends a message in SMTP
  'From the start of a line\nFrom the next',
  '   ',
  '🥑'.repeat(200),
  'comma, "quote", \ttab, \u00A0hard space, \u200Bzero width, e\u0301 (not é)',
] as const
