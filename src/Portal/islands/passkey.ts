/** Shows the forms of passkeys where the browser has them, and fills them in before they are sent. */
import {
  browserSupportsWebAuthn,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration
} from "@simplewebauthn/browser"

const answerOf = (form: HTMLFormElement): Promise<unknown> => {
  const options: unknown = JSON.parse(form.dataset.options ?? "")
  // The server has made them with the same library.
  return form.dataset.passkey === "create"
    ? startRegistration({ optionsJSON: options as PublicKeyCredentialCreationOptionsJSON })
    : startAuthentication({ optionsJSON: options as PublicKeyCredentialRequestOptionsJSON })
}

for (const form of browserSupportsWebAuthn() ? document.querySelectorAll<HTMLFormElement>("form[data-passkey]") : []) {
  const field = form.elements.namedItem(form.dataset.field ?? "")
  if (!(field instanceof HTMLInputElement)) continue
  form.hidden = false
  form.addEventListener("submit", async (event) => {
    if (field.value !== "") return
    event.preventDefault()
    const said = form.querySelector("[role=status]")
    if (said !== null) said.textContent = ""
    try {
      field.value = JSON.stringify(await answerOf(form))
      form.requestSubmit()
    } catch {
      if (said !== null) said.textContent = "The passkey was not used. Try again, or go on in another way."
    }
  })
}
