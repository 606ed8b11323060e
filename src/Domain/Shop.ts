import { DateTime, Option, Schema, Struct } from "effect"
import { maybe } from "../lib/annotations.ts"
import { parseUrl } from "../lib/Url.ts"
import { Fiat } from "./Currency.ts"

/** What the name of a shop may be: as long as fits above a checkout. */
export const ShopName = Schema.String.pipe(Schema.pattern(/^\P{C}+$/u), Schema.maxLength(60))

/** A colour such as `#1f5fd1`. */
export const Accent = Schema.String.pipe(Schema.pattern(/^#[0-9a-f]{6}$/))

/** The name of an image in the folder `checkout.logo_folder`; never a path. */
export const LogoFile = Schema.String.pipe(
  Schema.pattern(/^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*\.(png|svg|webp|jpg|jpeg)$/i),
  Schema.maxLength(100)
)

/** https anywhere, http on this machine for development. */
const isSite = ({ hostname, protocol }: URL): boolean =>
  protocol === "https:" || (protocol === "http:" && (hostname === "localhost" || hostname === "127.0.0.1"))

const isOrigin = (text: string): boolean => {
  const url = parseUrl(text)
  // What has a meaning of its own in the policy is part of no origin.
  return url?.origin === text && !/[;,'*]/.test(text) && isSite(url)
}

/** Where the customers of a shop find it, or its help: a page such as `https://shop.example/contact`. */
export const Website = Schema.String.pipe(
  Schema.maxLength(500),
  Schema.filter((text) => {
    const url = parseUrl(text)
    return url !== undefined && isSite(url)
  })
)

// A colon or a slash before the @ would make it a URL of any scheme, such as `ssh://git@host`.
const mailForm = /^[^\s\p{C}@<>"?&#%:;,/\\]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?$/iu

const isWebsite = Schema.is(Website)

/** Where a contact leads: `mailto:` an e-mail address, or a page as `Website`; undefined for anything else. */
export const contactLink = (text: string): `mailto:${string}` | `http${string}` | undefined =>
  mailForm.test(text) ? `mailto:${text}` : isWebsite(text) ? (text as `http${string}`) : undefined

/** Where customers ask about their money: an e-mail address, or a page as `Website`. */
export const Contact = Schema.String.pipe(Schema.filter((text) => contactLink(text) !== undefined))

/** A time zone of the IANA database, such as `Europe/Berlin`. */
export const TimeZone = Schema.String.pipe(
  Schema.pattern(/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/),
  Schema.filter((name) => Option.isSome(DateTime.zoneMakeNamed(name)))
)

/** The least that a payment may be worth, USD. */
export const MinimumUsd = Schema.String.pipe(Schema.pattern(/^(0|[1-9][0-9]{0,8})(\.[0-9]{1,8})?$/))

/** An origin that may show the checkout in a frame, such as `https://shop.example`. */
export const FrameOrigin = Schema.String.pipe(Schema.maxLength(255), Schema.filter(isOrigin))

/** Most origins of a shop: each is in a header of every checkout page. */
export const mostFrameOrigins = 10

/**
 * How an account's checkout looks, where it may be framed, in which days and currency the portal sums up what came in, and
 * what a payment must be worth. What is absent looks like tilld, and is UTC, USD and anything.
 */
export const Shop = Schema.Struct({
  name: maybe(ShopName),
  accent: maybe(Accent),
  logo: maybe(LogoFile),
  website: maybe(Website),
  contact: maybe(Contact),
  timezone: maybe(TimeZone),
  currency: maybe(Fiat),
  minimumUsd: maybe(MinimumUsd),
  /** Several invoices may have one `merchantRef`, as shop systems that repeat an order's number need it. */
  invoiceRefs: maybe(Schema.Literal("repeat")),
  /** Shop plugins may connect to the account and use it. */
  plugins: maybe(Schema.Literal("on")),
  frameOrigins: Schema.Array(FrameOrigin).pipe(Schema.maxItems(mostFrameOrigins))
})
export type Shop = typeof Shop.Type

/** The parts that are one text each. */
export const shopTexts = Struct.keys(Struct.omit(Shop.fields, "frameOrigins"))

/** An account that has not changed anything. */
export const plainShop: Shop = { frameOrigins: [] }
