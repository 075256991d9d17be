import { describeTransactions } from '../conformance/transactions-suite.ts'
import { prisma } from './subject.ts'

describeTransactions(prisma)
