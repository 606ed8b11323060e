import { Effect, Layer } from "effect"
import { DeliveryClient } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { Resolver, TargetGuard } from "../../src/Webhooks/transport/TargetGuard.ts"
import { testSettingsLayer, testWebhooks } from "./settings.ts"

/** A resolver that answers any name with the next of the list, then always with the last. */
export const answering = (...answers: ReadonlyArray<ReadonlyArray<string>>) => {
  let asked = 0
  return Layer.succeed(Resolver, {
    resolve: () => Effect.sync(() => answers[Math.min(asked++, answers.length - 1)] ?? [])
  })
}

/** The client as it is, which trusts a file's authorities too and may call 127.0.0.1. */
export const clientWith = (
  extraCaFile: string,
  resolver: Layer.Layer<Resolver> = answering(["127.0.0.1"]),
  allowTargets: ReadonlyArray<string> = ["127.0.0.1/32"]
) =>
  Layer.build(
    DeliveryClient.layer.pipe(
      Layer.provide(TargetGuard.layer),
      Layer.provide(resolver),
      Layer.provide(testSettingsLayer("", { webhooks: testWebhooks({ allowTargets, extraCaFile }) }))
    )
  ).pipe(Effect.flatMap((context) => Effect.provide(DeliveryClient, context)))
