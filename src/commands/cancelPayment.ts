import { Args, Command } from "@effect/cli"
import { CancelPayment } from "../Control/paymentRequests.ts"
import { common } from "./commonOptions.ts"
import { printResult } from "./result.ts"

const id = Args.text({ name: "ID" }).pipe(Args.withDescription("The payment, pay_…, as tilld payments list shows it"))

/** `tilld payments cancel`. */
export const cancel = Command.make("cancel", { ...common, id }, (options) =>
  printResult(
    options,
    "payments cancel",
    new CancelPayment({ id: options.id }),
    (payment) => `${payment.id} is ${payment.status}: it was cancelled`
  )
).pipe(
  Command.withDescription(
    "End an open payment now. What came for it is an exception, and so is what still comes: its address stays watched"
  )
)
