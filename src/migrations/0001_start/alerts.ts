/** Documents of Conditions: what has been told, and the configuration that the daemon last ran with. */
export const alerts = [
  "CREATE TABLE alerts (id INTEGER PRIMARY KEY CHECK (id = 1), state TEXT NOT NULL CHECK (json_valid(state))) STRICT",
  "CREATE TABLE configuration (id INTEGER PRIMARY KEY CHECK (id = 1), known TEXT NOT NULL CHECK (json_valid(known))) STRICT"
]
