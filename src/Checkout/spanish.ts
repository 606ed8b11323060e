import type { Texts } from "./english.ts"

export const spanish: Texts = {
  name: "Español",
  headline: {
    waiting: (amount, network) => `Pague ${amount} en ${network}`,
    partPaid: (missing) => `Faltan ${missing}`,
    tooLittle: (received, amount) => `Solo llegaron a tiempo ${received} de ${amount}`,
    wrong_chain: "Ha llegado dinero por otra red",
    wrong_token: "Ha llegado dinero en otra moneda",
    former: "Ha llegado dinero para su elección anterior",
    seen: "Pago detectado",
    closing: "El tiempo ha terminado",
    paid: "Pagado",
    expired: "Este pago ha caducado",
    tooLate: "Su pago se detectó demasiado tarde",
    cancelled: "Este pago se ha cancelado",
    failed: "Este pago no está completo",
    unavailable: "Este pago no es posible por el momento"
  },
  worth: (value) => `aproximadamente ${value}`,
  onNetwork: (currency, network) => `${currency} en ${network}`,
  onNetworkOnly: (currency, network) => `Solo ${currency} en ${network}`,
  warning: "Lo demás no se abona, y recuperarlo puede llevar días.",
  amount: "Importe",
  address: "Dirección",
  copy: "Copiar",
  copied: "Copiado",
  copyByHand: "Seleccionado: cópielo con una pulsación larga o con el teclado.",
  codes: "Escanee con un monedero",
  payCode: "Pago",
  addressCode: "Solo dirección",
  payCodeHint: "¿Su monedero muestra otra cosa? Elija «Solo dirección».",
  addressCodeHint: "Introduzca usted el importe.",
  openWallet: "Abrir en una aplicación de monedero",
  noWallet: "¿No se ha abierto ningún monedero? Copie el importe y la dirección.",
  choose: (price) => `Elija cómo pagar ${price}`,
  whichToChoose: "Elija lo que tiene en su cartera o plataforma, en la red por la que envía.",
  changeChoice: "Pagar con otra cosa",
  rateExpired: "El tipo de cambio ha caducado. Elija de nuevo, al de hoy.",
  moreChoices: (count) => `${count} formas más de pagar`,
  fee: (cost) => `comisión de red de unos ${cost}`,
  unpriced: "No disponible ahora: sin precio actual.",
  help: "¿Necesita ayuda?",
  exchange: (network, amount) =>
    `¿Envía desde una plataforma de intercambio? Elija allí la red ${network} y sume su comisión: deben llegar al menos ${amount}.`,
  least: (amount) => `Menos de ${amount} en una sola transferencia no se abona, salvo que complete el pago.`,
  alreadySent: "¿Ya lo ha enviado? Puede tardar unos minutos en aparecer aquí. No lo envíe dos veces.",
  showCode: "Mostrar código QR",
  timeLeft: "Tiempo restante:",
  partPaid: (received, amount) =>
    `Han llegado ${received} de ${amount}, y cuentan. Envíe lo que falta a la misma dirección.`,
  seen: "No tiene que hacer nada más: puede cerrar esta página.",
  confirmations: (count, needed) => `${count} de ${needed} confirmaciones`,
  timeToFinal: (time) => `faltan unos ${time}`,
  lastCheck: "Ya están todas las confirmaciones. Se está haciendo una última comprobación.",
  closing:
    "No envíe nada más. Si acaba de pagar, espere un momento: lo que se envió a tiempo cuenta y aparecerá en esta página.",
  closingPart: (received, amount) =>
    `Llegaron a tiempo ${received} de ${amount}. No envíe nada más: hay una última comprobación en curso.`,
  closingOther: "No envíe nada más. Hay una última comprobación en curso.",
  returning: "Volverá a la tienda en ocho segundos.",
  stay: "Quedarse en esta página",
  backToShop: "Volver a la tienda",
  expired:
    "No se ha detectado ningún pago a tiempo. No envíe nada más a esta dirección: vuelva a empezar en la tienda para obtener un pago nuevo.",
  cancelled: "La tienda lo ha cancelado. No envíe nada más a esta dirección.",
  failed: (currency, network) => ({
    insufficient_amount:
      "El dinero está a salvo en la tienda: pídale que lo acepte o que lo devuelva. No envíe nada más a esta dirección.",
    wrong_token: `Ha llegado dinero, pero no en ${currency}. La tienda lo tiene: pídale que lo acepte o que lo devuelva.`,
    wrong_chain: `Ha llegado dinero, pero no en ${network}. La tienda lo tiene: pídale que lo acepte o que lo devuelva.`,
    reorged: `${network} ha deshecho la transacción que pagó. Mire en su monedero si se ha vuelto a enviar y pregunte a la tienda antes de pagar otra vez.`,
    abandoned: `La tienda ya no sigue ${network}. No envíe nada a esta dirección; si ha pagado, pregunte a la tienda.`
  }),
  eitherWay:
    "El dinero está a salvo. Pida primero a la tienda que lo acepte. Si paga otra vez, pídale que devuelva este dinero.",
  payAgain: (network) => `Pagar otra vez en ${network}`,
  startAgain: "Para hacer el pedido, vuelva a empezar en la tienda.",
  tooLate: "No pague otra vez.",
  sentAnyway:
    "¿Ya lo ha enviado? Lo que fue a esta dirección está a salvo: póngase en contacto con la tienda e indique esta referencia.",
  contact: (shop) => `Póngase en contacto con ${shop ?? "la tienda"} e indique esta referencia.`,
  contactShop: (shop) => `Contactar con ${shop ?? "la tienda"}`,
  askBack: "Pida a la tienda que se los devuelva.",
  extra: {
    overpaid: (amount) => `Ha enviado ${amount} de más.`,
    late: (amount) => `Han llegado ${amount} cuando el tiempo ya había terminado.`,
    found_late: (amount) => `Se han detectado ${amount} cuando este pago ya había terminado.`,
    wrong_token: (amount, _, currency) => `Han llegado ${amount}, pero se pedía ${currency}.`,
    wrong_chain: (amount, network, _, asked) => `Han llegado ${amount} en ${network}, pero se pedía ${asked}.`,
    former: (amount, network) => `Han llegado ${amount} por ${network}, para su elección anterior.`,
    other: (amount) => `Han llegado ${amount}.`
  },
  fate: {
    open: "El dinero está a salvo en la tienda: pídale que lo acepte o que lo devuelva.",
    accepted: "La tienda lo ha aceptado.",
    refunded: "La tienda lo ha devuelto.",
    rest: (sentBack) => `Se han devuelto ${sentBack}, y la tienda ha aceptado el resto.`,
    partly: (sentBack) => `Se han devuelto ${sentBack}. El resto está a salvo en la tienda.`
  },
  paidAt: "Fecha del pago",
  transaction: "Transacción",
  explorer: "Ver en el explorador de bloques",
  print: "Imprimir el recibo",
  unavailable: "No envíe nada ahora.",
  reference: "Referencia",
  lagging: (network) =>
    `${network} se está leyendo con retraso en este momento. Lo que envíe se encontrará en cuanto se vuelva a leer.`,
  test: "Pago de prueba: no es dinero real",
  offline: "Sin conexión. Su pago no se ve afectado: esta página continúa cuando vuelva.",
  languages: "Idioma",
  notFound: {
    title: "Este pago no existe",
    text: "Compruebe el enlace, búsquelo en su pedido o en su correo, o pídaselo a la tienda. Un enlace equivocado no cambia nada en un pago ya hecho."
  },
  wallet: {
    pay: "Pagar con {wallet}",
    confirm: "Confirme el pago en {wallet}.",
    sent: "Enviado. Transacción:",
    waiting: "Enviado: a la espera de la red",
    note: "No tiene que hacer nada más. No pague otra vez: esta página lo muestra en cuanto la red lo tenga.",
    again: "¿Ha fallado? Mostrar cómo pagar",
    declined: "Rechazado en {wallet}: no se ha enviado nada.",
    unknownNetwork: "{wallet} no conoce esta red. Añádala allí e inténtelo de nuevo.",
    failed: "{wallet} no ha podido enviar el pago. Compruebe allí la red y su saldo e inténtelo de nuevo."
  }
}
