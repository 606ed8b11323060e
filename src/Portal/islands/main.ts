import "./passkey.ts"
