import { drizzleOnPg, drizzleOnPglite, drizzleOnPostgresJs } from './subjects/drizzle.ts'
import { knex } from './subjects/knex.ts'
import { kysely, kyselyControlled } from './subjects/kysely.ts'
import { mikroOrm, mikroOrmBegin } from './subjects/mikro-orm.ts'
import { pg } from './subjects/pg.ts'
import { pglite } from './subjects/pglite.ts'
import { postgresJs } from './subjects/postgres-js.ts'
import { sequelize } from './subjects/sequelize.ts'
import { typeOrm, typeOrmRunner } from './subjects/typeorm.ts'
import { describeTransactions } from './transactions-suite.ts'

for (const subject of [
  pg,
  postgresJs,
  pglite,
  drizzleOnPg,
  drizzleOnPostgresJs,
  drizzleOnPglite,
  kysely,
  kyselyControlled,
  knex,
  typeOrm,
  typeOrmRunner,
  mikroOrm,
  mikroOrmBegin,
  sequelize,
]) {
  describeTransactions(subject)
}
