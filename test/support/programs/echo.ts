import { listenToTest, tell } from '../program.ts'

if (process.argv[2] === 'fail') throw new Error('asked to fail')
setInterval(() => {}, 1_000)
listenToTest(({ n }) => tell('said', { n }))
tell('ready')
