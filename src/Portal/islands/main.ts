import "./continue.ts"
import "./copy.ts"
