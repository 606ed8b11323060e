import { describe, expect, it } from "@effect/vitest"
import {
  type AlertState,
  attempted,
  type Condition,
  dueOf,
  look,
  mostUnsent,
  nothingSeen
} from "../../src/Alerts/alertState.ts"

const minute = 60_000
const trouble = (over: Partial<Condition> = {}): Condition => ({
  key: "disk",
  summary: "the disk is full",
  remedy: "free some space",
  patience: 2 * minute,
  ...over
})

/** The state after a look each minute from 0 on, at which these hold. */
const looks = (...minutes: ReadonlyArray<ReadonlyArray<Condition>>): AlertState =>
  minutes.reduce((state, conditions, i) => look(state, conditions, i * minute), nothingSeen)

const messages = ({ unsent }: AlertState) =>
  unsent.map(({ body }) => {
    const { alert, createdAt, type } = JSON.parse(body)
    return `${createdAt.slice(14, 16)} ${type} ${alert.key}`
  })

const none: ReadonlyArray<Condition> = []
const disk = [trouble()]

describe("the state of alerts", () => {
  it.each<[string, ReadonlyArray<ReadonlyArray<Condition>>, ReadonlyArray<string>]>([
    ["a condition that holds for its patience is reported once", [disk, disk, disk, disk], ["02 alert.opened disk"]],
    ["a condition that passes before that is not", [disk, disk, none, disk, disk], []],
    ["a condition without patience is reported at once", [[trouble({ patience: 0 })]], ["00 alert.opened disk"]],
    [
      "a condition that is gone for five minutes is closed",
      [disk, disk, disk, none, none, none, none, none, none],
      ["02 alert.opened disk", "08 alert.closed disk"]
    ],
    [
      "a condition that comes back within five minutes stays open",
      [disk, disk, disk, none, none, none, none, disk, none, none, none, none, disk],
      ["02 alert.opened disk"]
    ],
    [
      "two conditions are reported separately",
      [[...disk, trouble({ key: "clock", patience: minute })], disk, disk, disk, disk, disk, disk].map((each, i) =>
        i === 1 ? [...each, trouble({ key: "clock", patience: minute })] : each
      ),
      ["01 alert.opened clock", "02 alert.opened disk"]
    ]
  ])("%s", (_, minutes, expected) => {
    expect(messages(looks(...minutes))).toEqual(expected)
  })

  it("a message says what is wrong, what to do, since when, and until when", () => {
    const now = [disk, disk, disk, ...Array(6).fill(none)]
    const bodies = looks(...now).unsent.map(({ body }) => JSON.parse(body))
    const alert = {
      key: "disk",
      summary: "the disk is full",
      remedy: "free some space",
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
    let state = looks([trouble({ patience: 0 })])
    const [first] = state.unsent
    const waits: Array<number> = []
    let now = 0
    for (let next = first; next !== undefined; [next] = state.unsent) {
      expect(next).toMatchObject({ id: first?.id, body: first?.body })
      expect(dueOf(state, next.nextAt - 1)).toEqual([])
      expect(dueOf(state, next.nextAt)).toEqual([next])
      waits.push((next.nextAt - now) / minute)
      now = next.nextAt
      state = attempted(state, next.id, 500, now)
    }
    expect(waits).toEqual([0, 1, 5, 30, 120, 1440])
    expect(attempted(looks([trouble({ patience: 0 })]), first?.id ?? "", 204, 0).unsent).toHaveLength(1)
  })

  it("a message that arrives is not sent again, and others still are", () => {
    const state = looks([trouble({ patience: 0 }), trouble({ key: "clock", patience: 0 })])
    const [one, other] = state.unsent
    expect(attempted(state, one?.id ?? "", 204, 0).unsent).toEqual([other])
  })

  it("of too many messages the newest are kept", () => {
    const many = Array.from({ length: mostUnsent + 5 }, (_, i) => trouble({ key: `endpoint ${i}`, patience: 0 }))
    expect(messages(looks(many)).at(0)).toBe("00 alert.opened endpoint 5")
    expect(looks(many).unsent).toHaveLength(mostUnsent)
  })

  it("a closed alert is not sent before its opened alert, and other alerts do not wait", () => {
    const opened = looks([trouble({ patience: 0 }), trouble({ key: "clock", patience: 0 })])
    const [first, other] = opened.unsent
    const waits = attempted(attempted(opened, first?.id ?? "", 500, 0), other?.id ?? "", 204, 0)
    const gone = look(look(waits, none, 0), none, 5 * minute)
    expect(messages(gone)).toEqual(["00 alert.opened disk", "05 alert.closed disk", "05 alert.closed clock"])
    const due = (state: AlertState) => messages({ ...state, unsent: [...dueOf(state, 5 * minute)] })
    expect(due(gone)).toEqual(["00 alert.opened disk", "05 alert.closed clock"])
    expect(due(attempted(gone, first?.id ?? "", 204, 5 * minute))).toEqual([
      "05 alert.closed disk",
      "05 alert.closed clock"
    ])
  })

  it("a clock that was a month ahead and is set back suppresses no alert", () => {
    const month = 30 * 24 * 60 * minute
    const back = (state: AlertState, conditions: ReadonlyArray<Condition>) =>
      [0, 1, 2, 3, 4, 5, 6].reduce((now, i) => look(now, conditions, i * minute), state)
    expect(messages(back(look(nothingSeen, disk, month), disk))).toEqual(["02 alert.opened disk"])

    const opened = look(nothingSeen, [trouble({ patience: 0 })], month)
    expect(messages(back(look(opened, none, month), none))).toEqual(["00 alert.opened disk", "05 alert.closed disk"])
    const retried = attempted(opened, opened.unsent[0]?.id ?? "", 500, month)
    expect(dueOf(back(retried, disk), minute)).toHaveLength(1)
  })
})
