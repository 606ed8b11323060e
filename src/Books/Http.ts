import { Effect } from "effect"
import { invalidCursor } from "../Http/cursor.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { defaultPageSize } from "../lib/parameters.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import type { LedgerApi } from "./Api.ts"
import * as BooksRepo from "./BooksRepo.ts"

export const ledgerHandlers = Effect.gen(function* () {
  const reader = yield* Reader
  const { chains } = yield* Settings
  const handlers: Handlers<typeof LedgerApi> = {
    list: ({ key: { account, mode }, query: { cursor, limit = defaultPageSize, ...filter } }) =>
      Effect.gen(function* () {
        const after = cursor === undefined ? undefined : BooksRepo.placeIn(cursor)
        if (cursor !== undefined && after === undefined) return yield* invalidCursor
        const { next, rows } = yield* BooksRepo.page(reader, chains, { ...filter, account, mode }, after, limit)
        const data = rows.map(({ account: _, mode: __, ...row }) => row)
        return answer({ data, cursor: next === undefined ? null : BooksRepo.placeText(next) })
      })
  }
  return handlers
})
