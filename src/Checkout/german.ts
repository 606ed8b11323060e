import type { Texts } from "./english.ts"

export const german: Texts = {
  name: "Deutsch",
  headline: {
    waiting: (amount, network) => `${amount} auf ${network} zahlen`,
    partPaid: (missing) => `Es fehlen noch ${missing}`,
    tooLittle: (received, amount) => `Nur ${received} von ${amount} kamen rechtzeitig`,
    wrong_chain: "Geld ist auf dem falschen Netzwerk angekommen",
    wrong_token: "Geld ist in der falschen Währung angekommen",
    former: "Geld ist für Ihre frühere Wahl angekommen",
    seen: "Zahlung gesehen",
    closing: "Die Zeit ist abgelaufen",
    paid: "Bezahlt",
    expired: "Diese Zahlung ist abgelaufen",
    tooLate: "Ihre Zahlung wurde zu spät gesehen",
    cancelled: "Diese Zahlung wurde storniert",
    failed: "Diese Zahlung ist nicht vollständig",
    unavailable: "Diese Zahlung ist im Moment nicht möglich"
  },
  worth: (value) => `etwa ${value}`,
  onNetwork: (currency, network) => `${currency} auf ${network}`,
  onNetworkOnly: (currency, network) => `Nur ${currency} auf ${network}`,
  warning: "Anderes wird nicht angerechnet, und es zurückzubekommen kann Tage dauern.",
  amount: "Betrag",
  address: "Adresse",
  copy: "Kopieren",
  copied: "Kopiert",
  copyByHand: "Markiert: bitte lange drücken oder mit der Tastatur kopieren.",
  codes: "Mit einer Wallet scannen",
  payCode: "Zahlung",
  addressCode: "Nur Adresse",
  payCodeHint: "Ihre Wallet zeigt etwas anderes an? Wählen Sie „Nur Adresse“.",
  addressCodeHint: "Geben Sie den Betrag selbst ein.",
  openWallet: "In einer Wallet-App öffnen",
  noWallet: "Hat sich keine Wallet geöffnet? Kopieren Sie Betrag und Adresse.",
  choose: (price) => `Wählen Sie, womit Sie ${price} zahlen`,
  whichToChoose: "Wählen Sie, was Ihre Wallet oder Börse hat, und das Netzwerk, über das sie sendet.",
  changeChoice: "Mit etwas anderem zahlen",
  rateExpired: "Der Kurs ist abgelaufen. Wählen Sie neu, zum heutigen Kurs.",
  moreChoices: (count) => `${count} weitere Möglichkeiten`,
  fee: (cost) => `Netzwerkgebühr etwa ${cost}`,
  unpriced: "Derzeit nicht möglich: kein aktueller Kurs.",
  help: "Brauchen Sie Hilfe?",
  exchange: (network, amount) =>
    `Sie senden von einer Börse? Wählen Sie dort das Netzwerk ${network} und rechnen Sie deren Gebühr dazu: Mindestens ${amount} müssen ankommen.`,
  least: (amount) =>
    `Weniger als ${amount} in einer Überweisung wird nicht gutgeschrieben, es sei denn, die Zahlung wird damit vollständig.`,
  alreadySent: "Schon gesendet? Es kann einige Minuten dauern, bis es hier erscheint. Senden Sie nicht zweimal.",
  showCode: "QR-Code zeigen",
  timeLeft: "Verbleibende Zeit:",
  partPaid: (received, amount) =>
    `${received} von ${amount} sind angekommen und zählen. Senden Sie den Rest an dieselbe Adresse.`,
  seen: "Sie müssen nichts mehr tun und können diese Seite schließen.",
  confirmations: (count, needed) => `${count} von ${needed} Bestätigungen`,
  timeToFinal: (time) => `noch etwa ${time}`,
  lastCheck: "Alle Bestätigungen sind da. Eine letzte Prüfung läuft.",
  closing:
    "Senden Sie nichts mehr. Haben Sie gerade bezahlt, warten Sie einen Moment: Was rechtzeitig gesendet wurde, zählt und erscheint hier.",
  closingPart: (received, amount) =>
    `${received} von ${amount} kamen rechtzeitig. Senden Sie nichts mehr: Eine letzte Prüfung läuft.`,
  closingOther: "Senden Sie nichts mehr. Eine letzte Prüfung läuft.",
  returning: "In acht Sekunden geht es zurück zum Shop.",
  stay: "Auf dieser Seite bleiben",
  backToShop: "Zurück zum Shop",
  expired:
    "Es wurde rechtzeitig keine Zahlung gesehen. Senden Sie nichts mehr an diese Adresse: Beginnen Sie im Shop neu, um eine neue Zahlung zu erhalten.",
  cancelled: "Der Shop hat sie storniert. Senden Sie nichts mehr an diese Adresse.",
  failed: (currency, network) => ({
    insufficient_amount:
      "Das Geld ist sicher beim Shop: Bitten Sie ihn, es anzunehmen oder zurückzusenden. Senden Sie nichts mehr an diese Adresse.",
    wrong_token: `Geld ist angekommen, aber nicht in ${currency}. Der Shop hat es: Bitten Sie ihn, es anzunehmen oder zurückzusenden.`,
    wrong_chain: `Geld ist angekommen, aber nicht auf ${network}. Der Shop hat es: Bitten Sie ihn, es anzunehmen oder zurückzusenden.`,
    reorged: `${network} hat die Transaktion, die bezahlt hat, rückgängig gemacht. Sehen Sie in Ihrer Wallet nach, ob sie erneut gesendet wurde, und fragen Sie den Shop, bevor Sie noch einmal zahlen.`,
    abandoned: `Der Shop verfolgt ${network} nicht mehr. Senden Sie nichts an diese Adresse; haben Sie bezahlt, fragen Sie den Shop.`
  }),
  eitherWay:
    "Das Geld ist sicher. Bitten Sie zuerst den Shop, es anzunehmen. Zahlen Sie noch einmal, bitten Sie ihn, dieses Geld zurückzusenden.",
  payAgain: (network) => `Noch einmal auf ${network} zahlen`,
  startAgain: "Um doch zu bestellen, beginnen Sie im Shop neu.",
  tooLate: "Zahlen Sie nicht noch einmal.",
  sentAnyway:
    "Schon gesendet? Was an diese Adresse ging, ist sicher: Wenden Sie sich an den Shop und nennen Sie diese Referenz.",
  contact: (shop) => `Wenden Sie sich an ${shop ?? "den Shop"} und nennen Sie diese Referenz.`,
  contactShop: (shop) => `${shop ?? "Shop"} kontaktieren`,
  askBack: "Bitten Sie den Shop, es zurückzusenden.",
  extra: {
    overpaid: (amount) => `Sie haben ${amount} zu viel gesendet.`,
    late: (amount) => `${amount} sind nach Ablauf der Zeit angekommen.`,
    found_late: (amount) => `${amount} wurden erst gesehen, als diese Zahlung schon beendet war.`,
    wrong_token: (amount, _, currency) => `${amount} sind angekommen, verlangt war aber ${currency}.`,
    wrong_chain: (amount, network, _, asked) => `${amount} sind auf ${network} angekommen, verlangt war aber ${asked}.`,
    former: (amount, network) => `${amount} sind über ${network} angekommen, für Ihre frühere Wahl.`,
    other: (amount) => `${amount} sind angekommen.`
  },
  fate: {
    open: "Es ist sicher beim Shop: Bitten Sie ihn, es anzunehmen oder zurückzusenden.",
    accepted: "Der Shop hat das Geld angenommen.",
    refunded: "Der Shop hat das Geld zurückgesendet.",
    rest: (sentBack) => `${sentBack} davon wurden zurückgesendet, den Rest hat der Shop angenommen.`,
    partly: (sentBack) => `${sentBack} davon wurden zurückgesendet. Der Rest ist sicher beim Shop.`
  },
  paidAt: "Bezahlt am",
  transaction: "Transaktion",
  explorer: "Im Block-Explorer ansehen",
  print: "Beleg drucken",
  unavailable: "Senden Sie jetzt nichts.",
  reference: "Referenz",
  lagging: (network) =>
    `${network} wird im Moment mit Verzögerung gelesen. Was Sie senden, wird gefunden, sobald es wieder gelesen wird.`,
  test: "Testzahlung: kein echtes Geld",
  offline:
    "Keine Verbindung. Ihre Zahlung ist nicht betroffen: Diese Seite geht weiter, sobald Sie wieder online sind.",
  languages: "Sprache",
  notFound: {
    title: "Diese Zahlung gibt es nicht",
    text: "Prüfen Sie den Link, suchen Sie ihn in Ihrer Bestellung oder deren E‑Mail, oder fragen Sie den Shop danach. Ein falscher Link ändert nichts an einer Zahlung, die Sie gemacht haben."
  },
  wallet: {
    pay: "Mit {wallet} zahlen",
    confirm: "Bestätigen Sie die Zahlung in {wallet}.",
    sent: "Gesendet. Transaktion:",
    waiting: "Gesendet: warten auf das Netzwerk",
    note: "Sie müssen nichts mehr tun. Zahlen Sie nicht noch einmal: Diese Seite zeigt es, sobald das Netzwerk es hat.",
    again: "Hat es nicht geklappt? Zeigen, wie man zahlt",
    declined: "In {wallet} abgelehnt: Es wurde nichts gesendet.",
    unknownNetwork: "{wallet} kennt dieses Netzwerk nicht. Fügen Sie es dort hinzu und versuchen Sie es erneut.",
    failed:
      "{wallet} konnte die Zahlung nicht senden. Prüfen Sie dort Netzwerk und Guthaben und versuchen Sie es erneut."
  }
}
