/** The state of alerts: one document, of Alerts/alertState.ts. */
export const alerts = [
  "CREATE TABLE alerts (id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT NOT NULL CHECK (json_valid(state))) STRICT"
]
