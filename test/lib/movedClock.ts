/** Node with its clock this far ahead, milliseconds. At each SIGUSR2 it goes ten minutes further, and says so. */
export const movedClock = (ahead = 0) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
    `let ahead = ${ahead}
     process.on("SIGUSR2", () => { ahead += 600_000; console.error("ten minutes later") })
     const Now = Date; globalThis.Date = class extends Now {
       constructor(...given) { super(...(given.length === 0 ? [Now.now() + ahead] : given)) }
       static now() { return Now.now() + ahead }
     }`
  )}`
})
