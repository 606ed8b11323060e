import type { Texts } from "./english.ts"

export const portuguese: Texts = {
  name: "Português",
  headline: {
    waiting: (amount, network) => `Pague ${amount} em ${network}`,
    partPaid: (missing) => `Ainda faltam ${missing}`,
    tooLittle: (received, amount) => `Só chegaram a tempo ${received} de ${amount}`,
    wrong_chain: "Chegou dinheiro na rede errada",
    wrong_token: "Chegou dinheiro na moeda errada",
    former: "Chegou dinheiro para a sua escolha anterior",
    seen: "Pagamento detetado",
    closing: "O tempo terminou",
    paid: "Pago",
    expired: "Este pagamento expirou",
    tooLate: "O seu pagamento foi detetado tarde demais",
    cancelled: "Este pagamento foi cancelado",
    failed: "Este pagamento não está completo",
    unavailable: "Este pagamento não é possível de momento"
  },
  worth: (value) => `cerca de ${value}`,
  onNetwork: (currency, network) => `${currency} em ${network}`,
  onNetworkOnly: (currency, network) => `Apenas ${currency} em ${network}`,
  warning: "O resto não é creditado, e recuperá-lo pode demorar dias.",
  amount: "Montante",
  address: "Endereço",
  copy: "Copiar",
  copied: "Copiado",
  copyByHand: "Selecionado: copie com um toque longo ou com o teclado.",
  codes: "Leia com uma carteira",
  payCode: "Pagamento",
  addressCode: "Só o endereço",
  payCodeHint: "A sua carteira mostra outra coisa? Escolha “Só o endereço”.",
  addressCodeHint: "Introduza o valor.",
  openWallet: "Abrir numa aplicação de carteira",
  noWallet: "Não se abriu nenhuma carteira? Copie o valor e o endereço.",
  choose: (price) => `Escolha como pagar ${price}`,
  whichToChoose: "Escolha o que tem na sua carteira ou corretora, na rede pela qual envia.",
  changeChoice: "Pagar com outra coisa",
  rateExpired: "A taxa de câmbio expirou. Escolha de novo, à taxa de hoje.",
  moreChoices: (count) => `Mais ${count} formas de pagar`,
  fee: (cost) => `taxa de rede de cerca de ${cost}`,
  unpriced: "Indisponível agora: sem preço atual.",
  help: "Precisa de ajuda?",
  exchange: (network, amount) =>
    `Envia a partir de uma corretora? Escolha lá a rede ${network} e some a taxa: devem chegar pelo menos ${amount}.`,
  least: (amount) => `Menos de ${amount} numa só transferência não é creditado, exceto se completar o pagamento.`,
  alreadySent: "Já enviou? Pode demorar alguns minutos a aparecer aqui. Não envie duas vezes.",
  showCode: "Mostrar código QR",
  timeLeft: "Tempo restante:",
  partPaid: (received, amount) =>
    `Chegaram ${received} de ${amount}, e contam. Envie o que falta para o mesmo endereço.`,
  seen: "Não é preciso fazer mais nada: pode fechar esta página.",
  confirmations: (count, needed) => `${count} de ${needed} confirmações`,
  timeToFinal: (time) => `faltam cerca de ${time}`,
  lastCheck: "Já há todas as confirmações. Está em curso uma última verificação.",
  closing:
    "Não envie mais nada. Se acabou de pagar, aguarde um momento: o que foi enviado a tempo conta, e aparecerá nesta página.",
  closingPart: (received, amount) =>
    `Chegaram a tempo ${received} de ${amount}. Não envie mais nada: está em curso uma última verificação.`,
  closingOther: "Não envie mais nada. Está em curso uma última verificação.",
  returning: "Volta à loja dentro de oito segundos.",
  stay: "Ficar nesta página",
  backToShop: "Voltar à loja",
  expired:
    "Nenhum pagamento foi detetado a tempo. Não envie mais nada para este endereço: recomece na loja para obter um novo pagamento.",
  cancelled: "A loja cancelou-o. Não envie mais nada para este endereço.",
  failed: (currency, network) => ({
    insufficient_amount:
      "O dinheiro está em segurança na loja: peça-lhe que o aceite ou que o devolva. Não envie mais nada para este endereço.",
    wrong_token: `Chegou dinheiro, mas não em ${currency}. A loja tem-no: peça-lhe que o aceite ou que o devolva.`,
    wrong_chain: `Chegou dinheiro, mas não em ${network}. A loja tem-no: peça-lhe que o aceite ou que o devolva.`,
    reorged: `${network} anulou a transação que pagou. Veja na sua carteira se foi enviada de novo, e pergunte à loja antes de pagar outra vez.`,
    abandoned: `A loja já não acompanha ${network}. Não envie nada para este endereço; se pagou, pergunte à loja.`
  }),
  eitherWay:
    "O dinheiro está em segurança. Peça primeiro à loja que o aceite. Se pagar outra vez, peça-lhe que devolva este dinheiro.",
  payAgain: (network) => `Pagar outra vez em ${network}`,
  startAgain: "Para encomendar ainda, recomece na loja.",
  tooLate: "Não pague outra vez.",
  sentAnyway: "Já enviou? O que foi para este endereço está em segurança: contacte a loja e indique esta referência.",
  contact: (shop) => `Contacte ${shop ?? "a loja"} e indique esta referência.`,
  contactShop: (shop) => `Contactar ${shop ?? "a loja"}`,
  askBack: "Peça à loja que os devolva.",
  extra: {
    overpaid: (amount) => `Enviou ${amount} a mais.`,
    late: (amount) => `Chegaram ${amount} depois de o tempo ter terminado.`,
    found_late: (amount) => `${amount} só foram detetados depois de este pagamento ter terminado.`,
    wrong_token: (amount, _, currency) => `Chegaram ${amount}, mas foi pedido ${currency}.`,
    wrong_chain: (amount, network, _, asked) => `Chegaram ${amount} em ${network}, mas foi pedido ${asked}.`,
    former: (amount, network) => `Chegaram ${amount} em ${network}, para a sua escolha anterior.`,
    other: (amount) => `Chegaram ${amount}.`
  },
  fate: {
    open: "O dinheiro está em segurança na loja: peça-lhe que o aceite ou que o devolva.",
    accepted: "A loja aceitou-o.",
    refunded: "A loja devolveu-o.",
    rest: (sentBack) => `Foram devolvidos ${sentBack}, e a loja aceitou o resto.`,
    partly: (sentBack) => `Foram devolvidos ${sentBack}. O resto está em segurança na loja.`
  },
  paidAt: "Data do pagamento",
  transaction: "Transação",
  explorer: "Ver no explorador de blocos",
  print: "Imprimir o recibo",
  unavailable: "Não envie nada agora.",
  reference: "Referência",
  lagging: (network) =>
    `${network} está a ser lida com atraso neste momento. O que enviar será encontrado assim que voltar a ser lida.`,
  test: "Pagamento de teste: não é dinheiro real",
  offline: "Sem ligação. O seu pagamento não é afetado: esta página continua quando voltar.",
  languages: "Idioma",
  notFound: {
    title: "Este pagamento não existe",
    text: "Verifique o link, procure-o na sua encomenda ou no respetivo e‑mail, ou peça-o à loja. Um link errado não altera nada num pagamento já feito."
  },
  wallet: {
    pay: "Pagar com {wallet}",
    confirm: "Confirme o pagamento em {wallet}.",
    sent: "Enviado. Transação:",
    waiting: "Enviado: à espera da rede",
    note: "Não tem de fazer mais nada. Não pague outra vez: esta página mostra-o assim que a rede o tiver.",
    again: "Falhou? Mostrar como pagar",
    declined: "Recusado em {wallet}: nada foi enviado.",
    unknownNetwork: "{wallet} não conhece esta rede. Adicione-a lá e tente de novo.",
    failed: "{wallet} não conseguiu enviar o pagamento. Verifique lá a rede e o saldo e tente de novo."
  }
}
