import type { BrowserContext } from "playwright-core"

/** A call that a page made of its wallet. */
export interface WalletCall {
  readonly method: string
  readonly params?: ReadonlyArray<unknown>
}

/** What the wallet answers with, or the error that it raises. */
export type WalletAnswer = { readonly result: unknown } | { readonly code: number }

/** Gives every page of a context a wallet that announces itself as EIP-6963 says, and answers as the test wants. */
export const injectWallet = async (
  context: BrowserContext,
  name: string,
  answer: (call: WalletCall) => Promise<WalletAnswer>
): Promise<void> => {
  await context.exposeFunction("askTestWallet", answer)
  await context.addInitScript((walletName) => {
    const ask = (window as unknown as { askTestWallet: (call: unknown) => Promise<{ result: unknown; code?: number }> })
      .askTestWallet
    const provider = {
      request: async (call: unknown) => {
        const answered = await ask(call)
        if (answered.code === undefined) return answered.result
        throw Object.assign(new Error("refused"), { code: answered.code })
      }
    }
    const info = { uuid: "9f7e3c9e-6f4c-4f54-8f0c-6f1d7c1f7b11", name: walletName, icon: "data:,", rdns: "test.wallet" }
    const announce = () =>
      window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }))
    window.addEventListener("eip6963:requestProvider", announce)
    announce()
  }, name)
}
