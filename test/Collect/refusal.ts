import { Deferred, Effect } from "effect"

const nothing = "nothing was refused"
const including = (said: string) => ({ asymmetricMatch: (text: string) => text.includes(said), said })

/**
 * Why something is refused, or that nothing was. Effect.flip would fail with what it succeeds with, which is no error: vitest
 * may take minutes to show a plan or a signed file as one.
 */
export const refusal = <A, E extends { readonly message: string }, R>(
  asking: Effect.Effect<A, E, R>
): Effect.Effect<string, never, R> =>
  Effect.match(asking, { onFailure: ({ message }) => message, onSuccess: () => nothing })

/** The same of what tells of its progress and may wait for ever: the first that it tells ends it. */
export const refusalBefore = <A, E extends { readonly message: string }, R>(
  asking: (onProgress: (text: string) => Effect.Effect<void>) => Effect.Effect<A, E, R>
): Effect.Effect<string, never, R> =>
  Effect.flatMap(Deferred.make<string>(), (told) => {
    const onProgress = (text: string) => Effect.asVoid(Deferred.succeed(told, `${nothing}: ${text}`))
    return Effect.raceFirst(refusal(asking(onProgress)), Deferred.await(told))
  })

/** What a command ended as that has printed no result and said this. The bench loads it too, without vitest's matchers. */
export const failing = (code: number, said: string) => ({ code, stdout: "", stderr: including(said) })
