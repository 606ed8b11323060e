import { describe, expect, it } from "@effect/vitest"
import { type AlertMessage, attempted, dueOf, mostUnsent, queued } from "../../src/Conditions/alerts.ts"
import type { ConditionKind } from "../../src/Conditions/kinds.ts"
import { type Condition, conditionOf, type HeldCondition, look } from "../../src/Conditions/standing.ts"

const minute = 60_000

interface State {
  readonly seen: ReadonlyArray<HeldCondition>
  readonly unsent: ReadonlyArray<AlertMessage>
}
const nothing: State = { seen: [], unsent: [] }

const then = ({ seen, unsent }: State, conditions: ReadonlyArray<Condition>, now: number): State => {
  const found = look(seen, conditions, now)
  return { seen: found.seen, unsent: queued(unsent, found, now) }
}

const wrong = (kind: ConditionKind, subject = "") => conditionOf(kind, subject, "it is wrong", "mend it")
/** Patient for two minutes, for one, and not at all. */
const [hangs, low, full] = [wrong("worker_hangs"), wrong("disk_low"), wrong("quota_full")]

/** The state after a look each minute from 0 on, at which these hold. */
const looks = (...minutes: ReadonlyArray<ReadonlyArray<Condition>>): State =>
  minutes.reduce((state, conditions, i) => then(state, conditions, i * minute), nothing)

const messages = ({ unsent }: Pick<State, "unsent">) =>
  unsent.map(({ body }) => {
    const { alert, createdAt, type } = JSON.parse(body)
    return `${createdAt.slice(14, 16)} ${type} ${alert.key}`
  })

const none: ReadonlyArray<Condition> = []
const disk = [hangs]

describe("the state of alerts", () => {
  it.each<[string, ReadonlyArray<ReadonlyArray<Condition>>, ReadonlyArray<string>]>([
    [
      "a condition that holds for its patience is reported once",
      [disk, disk, disk, disk],
      ["02 alert.opened worker_hangs"]
    ],
    ["a condition that passes before that is not", [disk, disk, none, disk, disk], []],
    ["a condition without patience is reported at once", [[full]], ["00 alert.opened quota_full"]],
    [
      "a condition that is gone for five minutes is closed",
      [disk, disk, disk, none, none, none, none, none, none],
      ["02 alert.opened worker_hangs", "08 alert.closed worker_hangs"]
    ],
    [
      "a condition that comes back within five minutes stays open",
      [disk, disk, disk, none, none, none, none, disk, none, none, none, none, disk],
      ["02 alert.opened worker_hangs"]
    ],
    [
      "two conditions are reported separately",
      [[hangs, low], [hangs, low], disk, disk, disk, disk, disk],
      ["01 alert.opened disk_low", "02 alert.opened worker_hangs"]
    ]
  ])("%s", (_, minutes, expected) => {
    expect(messages(looks(...minutes))).toEqual(expected)
  })

  it("a message says what is wrong, what to do, since when, and until when", () => {
    const now = [disk, disk, disk, ...Array(6).fill(none)]
    const bodies = looks(...now).unsent.map(({ body }) => JSON.parse(body))
    const alert = {
      key: "worker_hangs",
      severity: "page",
      summary: "it is wrong",
      remedy: "mend it",
      openedAt: "1970-01-01T00:02:00.000Z"
    }
    expect(bodies).toEqual([
      { id: expect.stringMatching(/^alr_/), type: "alert.opened", createdAt: alert.openedAt, alert },
      {
        id: expect.stringMatching(/^alr_/),
        type: "alert.closed",
        createdAt: "1970-01-01T00:08:00.000Z",
        alert: { ...alert, closedAt: "1970-01-01T00:08:00.000Z" }
      }
    ])
  })

  it("a message is sent until it arrives, as often as a webhook, and its bytes stay", () => {
    let { unsent } = looks([full])
    const [first] = unsent
    const waits: Array<number> = []
    let now = 0
    for (let next = first; next !== undefined; [next] = unsent) {
      expect(next).toMatchObject({ id: first?.id, body: first?.body })
      expect(dueOf(unsent, next.nextAt - 1)).toEqual([])
      expect(dueOf(unsent, next.nextAt)).toEqual([next])
      waits.push((next.nextAt - now) / minute)
      now = next.nextAt
      unsent = attempted(unsent, next.id, 500, now)
    }
    expect(waits).toEqual([0, 1, 5, 30, 120, 1440])
    expect(attempted(looks([full]).unsent, first?.id ?? "", 204, 0)).toHaveLength(1)
  })

  it("a message that arrives is not sent again, and others still are", () => {
    const { unsent } = looks([full, wrong("quota_full", "b")])
    const [one, other] = unsent
    expect(attempted(unsent, one?.id ?? "", 204, 0)).toEqual([other])
  })

  it("of too many messages the newest are kept", () => {
    const many = Array.from({ length: mostUnsent + 5 }, (_, i) => wrong("quota_full", `${i}`))
    expect(messages(looks(many)).at(0)).toBe("00 alert.opened quota_full 5")
    expect(looks(many).unsent).toHaveLength(mostUnsent)
  })

  it("a closed alert is not sent before its opened alert, and other alerts do not wait", () => {
    const opened = looks([full, wrong("quota_full", "b")])
    const [first, other] = opened.unsent
    const waits = attempted(attempted(opened.unsent, first?.id ?? "", 500, 0), other?.id ?? "", 204, 0)
    const gone = then(then({ ...opened, unsent: waits }, none, 0), none, 5 * minute)
    expect(messages(gone)).toEqual([
      "00 alert.opened quota_full",
      "05 alert.closed quota_full",
      "05 alert.closed quota_full b"
    ])
    const due = (unsent: ReadonlyArray<AlertMessage>) => messages({ unsent: dueOf(unsent, 5 * minute) })
    expect(due(gone.unsent)).toEqual(["00 alert.opened quota_full", "05 alert.closed quota_full b"])
    expect(due(attempted(gone.unsent, first?.id ?? "", 500, -minute))).toEqual([
      "00 alert.opened quota_full",
      "05 alert.closed quota_full b"
    ])
    expect(due(attempted(gone.unsent, first?.id ?? "", 204, 5 * minute))).toEqual([
      "05 alert.closed quota_full",
      "05 alert.closed quota_full b"
    ])
  })

  it("a note is no message", () => {
    const notes = [conditionOf("chain_not_read", "base.test", "", "", "note"), wrong("nobody_is_told")]
    expect(looks(notes, ...Array(6).fill(none)).unsent).toEqual([])
  })

  it("a clock that was a month ahead and is set back suppresses no alert", () => {
    const month = 30 * 24 * 60 * minute
    const back = (state: State, conditions: ReadonlyArray<Condition>) =>
      [0, 1, 2, 3, 4, 5, 6].reduce((now, i) => then(now, conditions, i * minute), state)
    expect(messages(back(then(nothing, disk, month), disk))).toEqual(["02 alert.opened worker_hangs"])

    const opened = then(nothing, [full], month)
    expect(messages(back(then(opened, none, month), none))).toEqual([
      "00 alert.opened quota_full",
      "05 alert.closed quota_full"
    ])
    const retried = { ...opened, unsent: attempted(opened.unsent, opened.unsent[0]?.id ?? "", 500, month) }
    expect(dueOf(back(retried, [full]).unsent, minute)).toHaveLength(1)
  })
})
