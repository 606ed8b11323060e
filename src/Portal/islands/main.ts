import "./chooseAll.ts"
import "./continue.ts"
import "./copy.ts"
import "./passkey.ts"
