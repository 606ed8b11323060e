import type { Texts } from "./english.ts"

export const french: Texts = {
  name: "Français",
  headline: {
    waiting: (amount, network) => `Payez ${amount} sur ${network}`,
    partPaid: (missing) => `Il manque encore ${missing}`,
    tooLittle: (received, amount) => `Seulement ${received} sur ${amount} reçus à temps`,
    wrong_chain: "De l’argent est arrivé sur le mauvais réseau",
    wrong_token: "De l’argent est arrivé dans la mauvaise monnaie",
    former: "De l’argent est arrivé pour votre choix précédent",
    seen: "Paiement détecté",
    closing: "Le délai est écoulé",
    paid: "Payé",
    expired: "Ce paiement a expiré",
    tooLate: "Votre paiement a été détecté trop tard",
    cancelled: "Ce paiement a été annulé",
    failed: "Ce paiement n’est pas complet",
    unavailable: "Ce paiement est impossible pour le moment"
  },
  worth: (value) => `environ ${value}`,
  onNetwork: (currency, network) => `${currency} sur ${network}`,
  onNetworkOnly: (currency, network) => `Uniquement ${currency} sur ${network}`,
  warning: "Tout autre envoi n’est pas crédité, et le récupérer peut prendre des jours.",
  amount: "Montant",
  address: "Adresse",
  copy: "Copier",
  copied: "Copié",
  copyByHand: "Sélectionné : copiez-le par un appui long ou au clavier.",
  codes: "Scannez avec un portefeuille",
  payCode: "Paiement",
  addressCode: "Adresse seule",
  payCodeHint: "Votre portefeuille affiche autre chose ? Choisissez « Adresse seule ».",
  addressCodeHint: "Saisissez vous-même le montant.",
  openWallet: "Ouvrir dans une application de portefeuille",
  noWallet: "Aucun portefeuille ne s’est ouvert ? Copiez le montant et l’adresse.",
  choose: (price) => `Choisissez comment payer ${price}`,
  whichToChoose:
    "Choisissez ce que votre portefeuille ou plateforme possède, sur le réseau qu’il utilise pour envoyer.",
  changeChoice: "Payer avec autre chose",
  rateExpired: "Le cours a expiré. Choisissez de nouveau, au cours du jour.",
  moreChoices: (count) => `${count} autres moyens de payer`,
  fee: (cost) => `frais de réseau d’environ ${cost}`,
  unpriced: "Indisponible pour le moment : pas de cours actuel.",
  help: "Besoin d’aide ?",
  exchange: (network, amount) =>
    `Vous envoyez depuis une plateforme d’échange ? Choisissez-y le réseau ${network} et ajoutez ses frais : ${amount} au moins doivent arriver.`,
  least: (amount) => `Moins de ${amount} en un seul transfert n’est pas crédité, sauf si cela complète le paiement.`,
  alreadySent: "Déjà envoyé ? Cela peut mettre quelques minutes à s’afficher ici. N’envoyez pas deux fois.",
  showCode: "Afficher le code QR",
  timeLeft: "Temps restant :",
  partPaid: (received, amount) =>
    `${received} sur ${amount} sont arrivés et comptent. Envoyez ce qui manque à la même adresse.`,
  seen: "Vous n’avez plus rien à faire et pouvez fermer cette page.",
  confirmations: (count, needed) => `${count} confirmations sur ${needed}`,
  timeToFinal: (time) => `encore ${time} environ`,
  lastCheck: "Toutes les confirmations sont là. Une dernière vérification est en cours.",
  closing:
    "N’envoyez plus rien. Si vous venez de payer, patientez un instant : ce qui a été envoyé à temps compte, et cette page l’affichera.",
  closingPart: (received, amount) =>
    `${received} sur ${amount} sont arrivés à temps. N’envoyez plus rien : une dernière vérification est en cours.`,
  closingOther: "N’envoyez plus rien. Une dernière vérification est en cours.",
  returning: "Vous retournez à la boutique dans huit secondes.",
  stay: "Rester sur cette page",
  backToShop: "Retour à la boutique",
  expired:
    "Aucun paiement n’a été détecté à temps. N’envoyez plus rien à cette adresse : recommencez dans la boutique pour obtenir un nouveau paiement.",
  cancelled: "La boutique l’a annulé. N’envoyez plus rien à cette adresse.",
  failed: (currency, network) => ({
    insufficient_amount:
      "L’argent est en sécurité à la boutique : demandez-lui de l’accepter ou de le renvoyer. N’envoyez plus rien à cette adresse.",
    wrong_token: `De l’argent est arrivé, mais pas en ${currency}. La boutique l’a : demandez-lui de l’accepter ou de le renvoyer.`,
    wrong_chain: `De l’argent est arrivé, mais pas sur ${network}. La boutique l’a : demandez-lui de l’accepter ou de le renvoyer.`,
    reorged: `${network} a annulé la transaction qui avait payé. Vérifiez dans votre portefeuille si elle a été renvoyée, et demandez à la boutique avant de payer de nouveau.`,
    abandoned: `La boutique ne suit plus ${network}. N’envoyez rien à cette adresse ; si vous avez payé, demandez à la boutique.`
  }),
  eitherWay:
    "L’argent est en sécurité. Demandez d’abord à la boutique de l’accepter. Si vous payez de nouveau, demandez-lui de renvoyer cet argent.",
  payAgain: (network) => `Payer de nouveau sur ${network}`,
  startAgain: "Pour commander quand même, recommencez dans la boutique.",
  tooLate: "Ne payez pas une deuxième fois.",
  sentAnyway:
    "Déjà envoyé ? Ce qui est parti à cette adresse est en sécurité : contactez la boutique et indiquez cette référence.",
  contact: (shop) => `Contactez ${shop ?? "la boutique"} et indiquez cette référence.`,
  contactShop: (shop) => `Contacter ${shop ?? "la boutique"}`,
  askBack: "Demandez à la boutique de vous les rendre.",
  extra: {
    overpaid: (amount) => `Vous avez envoyé ${amount} de trop.`,
    late: (amount) => `${amount} sont arrivés une fois le délai écoulé.`,
    found_late: (amount) => `${amount} n’ont été détectés qu’une fois ce paiement terminé.`,
    wrong_token: (amount, _, currency) => `${amount} sont arrivés, mais ${currency} était demandé.`,
    wrong_chain: (amount, network, _, asked) => `${amount} sont arrivés sur ${network}, mais ${asked} était demandé.`,
    former: (amount, network) => `${amount} sont arrivés sur ${network}, pour votre choix précédent.`,
    other: (amount) => `${amount} sont arrivés.`
  },
  fate: {
    open: "L’argent est en sécurité à la boutique : demandez-lui de l’accepter ou de le renvoyer.",
    accepted: "La boutique l’a accepté.",
    refunded: "La boutique l’a renvoyé.",
    rest: (sentBack) => `${sentBack} ont été renvoyés, et la boutique a accepté le reste.`,
    partly: (sentBack) => `${sentBack} ont été renvoyés. Le reste est en sécurité à la boutique.`
  },
  paidAt: "Payé le",
  transaction: "Transaction",
  explorer: "Voir dans l’explorateur de blocs",
  print: "Imprimer le reçu",
  unavailable: "N’envoyez rien maintenant.",
  reference: "Référence\u00a0",
  lagging: (network) =>
    `${network} est lu avec du retard en ce moment. Ce que vous envoyez sera trouvé dès que la lecture reprendra.`,
  test: "Paiement de test : pas d’argent réel",
  offline: "Pas de connexion. Votre paiement n’est pas affecté : cette page reprend à votre retour.",
  languages: "Langue",
  notFound: {
    title: "Ce paiement n’existe pas",
    text: "Vérifiez le lien, cherchez-le dans votre commande ou son e‑mail, ou demandez-le à la boutique. Un lien erroné ne change rien à un paiement déjà fait."
  },
  wallet: {
    pay: "Payer avec {wallet}",
    confirm: "Confirmez le paiement dans {wallet}.",
    sent: "Envoyé. Transaction :",
    waiting: "Envoyé : en attente du réseau",
    note: "Vous n’avez plus rien à faire. Ne payez pas une seconde fois : cette page l’affiche dès que le réseau l’a.",
    again: "Échec ? Montrer comment payer",
    declined: "Refusé dans {wallet} : rien n’a été envoyé.",
    unknownNetwork: "{wallet} ne connaît pas ce réseau. Ajoutez-le là-bas, puis réessayez.",
    failed: "{wallet} n’a pas pu envoyer le paiement. Vérifiez-y le réseau et votre solde, puis réessayez."
  }
}
