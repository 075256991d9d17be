import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { compose } from '../app/composition.ts'
import { defineJob } from '../jobs/define-job.ts'
import { defineProducer } from '../producers/define-producer.ts'
import { resource } from '../resources/resource.ts'
import { graphOf } from './graph.ts'
import { type Manifest, manifestOf } from './manifest.ts'

const mailer = resource({ name: 'mailer', provides: ['send:sms', 'send:email'], create: () => 1 })
const base = { input: z.null(), idempotent: true, handler: () => {} } as const
const send = defineJob({
  ...base,
  name: 'sales.send',
  queue: 'mail',
  uses: { mailer },
  effects: ['send:email', 'read:sales.order', 'enqueue:sales.log'],
})
const log = defineJob({ ...base, name: 'sales.log', effects: ['write:sales.log'] })
const confirm = defineProducer({
  name: 'sales.confirm',
  input: z.null(),
  effects: ['write:sales.order', 'enqueue:sales.send'],
  run: () => {},
})
const cancel = defineProducer({
  name: 'sales.cancel "all"',
  input: z.null(),
  effects: ['write:sales.order', 'enqueue:sales.log'],
  run: () => {},
})

const parts = { name: 'shop', database: 'pglite:memory:', queues: { mail: { concurrency: 2 }, default: {} } }
const manifest = manifestOf(compose({ ...parts, jobs: [send, log], producers: [confirm, cancel] }))

describe('the manifest', () => {
  it('says who enqueues what, who touches what, and through which resources', () => {
    const plain = { ...manifest, jobs: manifest.jobs.map((job) => ({ ...job, contract: '…' })) }
    expect(plain).toMatchInlineSnapshot(`
      {
        "app": "shop",
        "effects": [
          {
            "effect": "enqueue:sales.log",
            "jobs": [
              "sales.send",
            ],
            "producers": [
              "sales.cancel "all"",
            ],
          },
          {
            "effect": "enqueue:sales.send",
            "jobs": [],
            "producers": [
              "sales.confirm",
            ],
          },
          {
            "effect": "read:sales.order",
            "jobs": [
              "sales.send",
            ],
            "producers": [],
          },
          {
            "effect": "send:email",
            "jobs": [
              "sales.send",
            ],
            "producers": [],
          },
          {
            "effect": "write:sales.log",
            "jobs": [
              "sales.log",
            ],
            "producers": [],
          },
          {
            "effect": "write:sales.order",
            "jobs": [],
            "producers": [
              "sales.cancel "all"",
              "sales.confirm",
            ],
          },
        ],
        "jobs": [
          {
            "contract": "…",
            "effects": [
              "write:sales.log",
            ],
            "maxAttempts": 20,
            "name": "sales.log",
            "priority": 0,
            "queue": "default",
            "timeoutMs": null,
            "uses": [],
          },
          {
            "contract": "…",
            "effects": [
              "enqueue:sales.log",
              "read:sales.order",
              "send:email",
            ],
            "maxAttempts": 20,
            "name": "sales.send",
            "priority": 0,
            "queue": "mail",
            "timeoutMs": null,
            "uses": [
              "mailer",
            ],
          },
        ],
        "producers": [
          {
            "effects": [
              "enqueue:sales.log",
              "write:sales.order",
            ],
            "name": "sales.cancel "all"",
          },
          {
            "effects": [
              "enqueue:sales.send",
              "write:sales.order",
            ],
            "name": "sales.confirm",
          },
        ],
        "queues": [
          {
            "concurrency": 10,
            "name": "default",
          },
          {
            "concurrency": 2,
            "name": "mail",
          },
        ],
        "resources": [
          {
            "name": "mailer",
            "provides": [
              "send:email",
              "send:sms",
            ],
          },
        ],
        "schema": "holdfast",
      }
    `)
  })

  it('is the same in whatever order things are declared', () => {
    const turned: Manifest = manifestOf(
      compose({
        ...parts,
        queues: { default: {}, mail: { concurrency: 2 } },
        jobs: [log, { ...send, effects: send.effects.toReversed() }],
        producers: [cancel, confirm],
      }),
    )
    expect(JSON.stringify(turned)).toBe(JSON.stringify(manifest))
    expect(graphOf(turned)).toEqual(graphOf(manifest))
  })

  it('draws producers, jobs, written data and what is outside', () => {
    expect(graphOf(manifest).join('\n')).toMatchInlineSnapshot(`
      "flowchart LR
        producer_sales_2e_cancel_20__22_all_22_(["sales.cancel #34;all#34;"])
        producer_sales_2e_confirm(["sales.confirm"])
        job_sales_2e_log["sales.log"]
        job_sales_2e_send["sales.send"]
        send_email{{"email"}}
        data_sales_2e_log[("sales.log")]
        data_sales_2e_order[("sales.order")]
        producer_sales_2e_cancel_20__22_all_22_ -->|enqueues| job_sales_2e_log
        producer_sales_2e_cancel_20__22_all_22_ -->|writes| data_sales_2e_order
        producer_sales_2e_confirm -->|enqueues| job_sales_2e_send
        producer_sales_2e_confirm -->|writes| data_sales_2e_order
        job_sales_2e_log -->|writes| data_sales_2e_log
        job_sales_2e_send -->|enqueues| job_sales_2e_log
        job_sales_2e_send -->|sends| send_email"
    `)
  })

  it('gives names that differ ids that differ', () => {
    const odd = ['a.b', 'a_b', 'a b', 'a_2e_b', 'é', '\u{1f4e6}'].map((name) => defineJob({ ...base, name }))
    const lines = graphOf(manifestOf(compose({ ...parts, jobs: odd })))
    expect(new Set(lines.map((line) => line.split('[')[0])).size).toBe(odd.length + 1)
    expect(lines.filter((line) => !/^(flowchart LR| {2}job_\w+\[".+"\])$/.test(line))).toEqual([])
  })
})
