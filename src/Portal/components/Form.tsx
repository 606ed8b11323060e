/**
 * Forms. A form that was refused is shown again by the POST itself, with what was typed and each problem beside its field;
 * one that was carried out redirects (`seeOther`).
 */
import { type ComponentChildren, createContext } from "preact"
import { useContext } from "preact/hooks"
import type { FieldProblem } from "../../Domain/ApiError.ts"
import { ChainName, chainTraits } from "../../Domain/Chain.ts"
import { Mark } from "../../Pages/marks.tsx"

/** A form's fields as they were typed, and what is wrong with them. */
export interface FormState {
  /** Unique on the page: fields of several forms may have one name. */
  readonly id: string
  readonly typed: URLSearchParams
  /** `path` is the field's name, or empty for the form as a whole. */
  readonly problems: ReadonlyArray<FieldProblem>
}

/** A form that nothing was typed into yet. */
export const blank = (id: string, values: Readonly<Record<string, string>> = {}): FormState => ({
  id,
  typed: new URLSearchParams(values),
  problems: []
})

const fieldId = ({ id }: FormState, name: string): string => `${id}-${name}`

const problemOf = ({ problems }: FormState, name: string) => problems.find(({ path }) => path === name)?.message

/** What a form's fields are called, for the summary of its problems. */
type Labels = Readonly<Record<string, string>>

/** The form around a field, and what its fields are called. */
const Around = createContext<{ readonly of: FormState; readonly labels: Labels }>({ of: blank(""), labels: {} })

export interface PostFormProps {
  readonly of: FormState
  /** The page that it is sent to, below the account's. */
  readonly to: string
  readonly submit: string
  readonly labels?: Labels
  /** What the button does cannot be undone. */
  readonly dangerous?: boolean
  readonly children?: ComponentChildren
}

/** What every form sends as the field `csrf`, and the address of a page below the account's; set by the frame. */
export const FormPlace = createContext({ csrf: "", addressOf: (to: string) => to })

/** A form that changes something. */
export const PostForm = ({ children, dangerous, labels = {}, of, submit, to }: PostFormProps) => {
  const { addressOf, csrf } = useContext(FormPlace)
  return (
    <form method="post" action={addressOf(to)} id={of.id} class="fields" noValidate>
      <Problems of={of} labels={labels} />
      <input type="hidden" name="csrf" value={csrf} />
      <Around.Provider value={{ of, labels }}>{children}</Around.Provider>
      <p class="actions">
        <button type="submit" class={dangerous ? "dangerous" : undefined}>
          {submit}
        </button>
      </p>
    </form>
  )
}

interface ActProps extends Pick<PostFormProps, "to"> {
  readonly fields?: Readonly<Record<string, string>>
  /** What the button says. */
  readonly children: ComponentChildren
}

/** A form of one button. */
export const Act = ({ children, fields = {}, to }: ActProps) => {
  const { addressOf, csrf } = useContext(FormPlace)
  return (
    <form method="post" action={addressOf(to)}>
      {Object.entries({ csrf, ...fields }).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      <button type="submit">{children}</button>
    </form>
  )
}

/** A link to a page below the account's, in a paragraph of its own. */
export const Onward = ({ children, to }: Pick<ActProps, "children" | "to">) => (
  <p>
    <a href={useContext(FormPlace).addressOf(to)}>{children}</a>
  </p>
)

/** The problems of a form, each with a link to its field. */
const Problems = ({ labels, of }: { readonly of: FormState; readonly labels: Labels }) =>
  of.problems.length === 0 ? null : (
    <div class="notice bad" role="alert" tabIndex={-1} autofocus>
      <p>Nothing was changed:</p>
      <ul>
        {of.problems.map(({ message, path }) => (
          <li key={path}>
            {labels[path] === undefined ? (
              [path, message].join(" ").trim()
            ) : (
              <>
                <a href={`#${fieldId(of, path)}`}>{labels[path]}</a> {message}
              </>
            )}
          </li>
        ))}
      </ul>
    </div>
  )

interface FieldProps {
  readonly name: string
  /** As the form around it calls it unless given. */
  readonly label?: string
  /** The form around it unless given. */
  readonly of?: FormState
  readonly hint?: ComponentChildren
}

/** A field with its form and its problem. */
const useField = ({ label, name, of }: FieldProps) => {
  const around = useContext(Around)
  const form = of ?? around.of
  const id = fieldId(form, name)
  return { form, id, label: label ?? around.labels[name] ?? name, problem: problemOf(form, name) }
}

/** The label of a field, its hint and its problem. */
const Labelled = ({ children, ...field }: FieldProps & { readonly children: ComponentChildren }) => {
  const { id, label, problem } = useField(field)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {field.hint === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {field.hint}
        </p>
      )}
      {problem === undefined ? null : (
        <p class="problem" id={`${id}-problem`}>
          {label} {problem}
        </p>
      )}
    </div>
  )
}

/** What is typed into a field, and the attributes that every one has. */
const useInput = (field: FieldProps) => {
  const { form, id, problem } = useField(field)
  const described = [field.hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ")
  const attributes = {
    id,
    name: field.name,
    "aria-invalid": problem === undefined ? undefined : ("true" as const),
    "aria-describedby": described === "" ? undefined : described
  }
  return { attributes, value: form.typed.get(field.name) ?? "" }
}

/** What a form carries and nobody types. */
export const Hidden = (field: Pick<FieldProps, "name" | "of">) => (
  <input type="hidden" name={field.name} value={useInput(field).value} />
)

interface TextFieldProps extends FieldProps {
  readonly type?: "text" | "search" | "url" | "date" | "datetime-local" | "password"
  readonly inputMode?: "numeric" | "decimal"
  readonly autocomplete?: string
  readonly required?: boolean
  readonly placeholder?: string
  /** The page is for this form alone: it begins here. */
  readonly isStart?: boolean
}

export const TextField = ({
  autocomplete = "off",
  inputMode,
  isStart,
  placeholder,
  required,
  type = "text",
  ...field
}: TextFieldProps) => {
  const { attributes, value } = useInput(field)
  return (
    <Labelled {...field}>
      <input
        {...attributes}
        // The types know one element a type, and not one whose type is a choice of several.
        type={type as "text"}
        inputMode={inputMode}
        autofocus={isStart}
        autocomplete={autocomplete}
        placeholder={placeholder}
        required={required}
        value={type === "password" ? "" : value}
      />
    </Labelled>
  )
}

export const TextArea = (field: FieldProps & { readonly rows?: number }) => {
  const { attributes, value } = useInput(field)
  return (
    <Labelled {...field}>
      <textarea {...attributes} rows={field.rows ?? 3} value={value} />
    </Labelled>
  )
}

interface ChoicesProps extends FieldProps {
  /** Values with what people read. */
  readonly options: ReadonlyArray<readonly [value: string, text: string]>
}

export const Select = ({ options, ...field }: ChoicesProps) => {
  const { attributes, value: chosen } = useInput(field)
  return (
    <Labelled {...field}>
      <select {...attributes}>
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  )
}

/** One of the chains, or any. */
export const ChainFilter = ({ of }: { readonly of: FormState }) => (
  <Select
    of={of}
    name="chain"
    label="Chain"
    options={[["", "any"], ...ChainName.literals.map((chain) => [chain, chainTraits[chain].displayName] as const)]}
  />
)

const Choices = ({ options, type, ...field }: ChoicesProps & { readonly type: "checkbox" | "radio" }) => {
  const { form, id, label, problem } = useField(field)
  const chosen = form.typed.getAll(field.name)
  return (
    <fieldset id={id}>
      <legend>{label}</legend>
      {options.map(([value, text]) => (
        <label key={value} class="check">
          <input type={type} name={field.name} value={value} checked={chosen.includes(value)} />
          <span>{text}</span>
        </label>
      ))}
      {problem === undefined ? null : (
        <p class="problem">
          {label} {problem}
        </p>
      )}
    </fieldset>
  )
}

/** Any number of choices of one name, all in view. */
export const Checks = (choices: ChoicesProps) => <Choices {...choices} type="checkbox" />

/** One choice of several, all in view. */
export const Radios = (choices: ChoicesProps) => <Choices {...choices} type="radio" />

interface FiltersProps {
  readonly action: string
  readonly children: ComponentChildren
  /** Whether one of its fields is used: then it is not folded away. */
  readonly used: boolean
}

/** The filters of a list that are typed, beside its chips: a form whose result has an address. */
export const Filters = ({ action, children, used }: FiltersProps) => (
  <search>
    <details open={used}>
      <summary>More filters</summary>
      <form method="get" action={action} class="filters">
        {children}
        <p class="actions">
          <button type="submit">Show</button> <a href={action}>Clear</a>
        </p>
      </form>
    </details>
  </search>
)

/** What is wrong with filters, which an address may have from anywhere. */
export const FilterProblems = ({ of: { problems } }: { readonly of: FormState }) =>
  problems.length === 0 ? null : (
    <div class="notice bad" role="alert">
      {problems.map(({ message, path }) => (
        <p key={path}>
          The filter {path} {message}.
        </p>
      ))}
    </div>
  )

interface ChipsProps {
  readonly label: string
  /** A count is of what the list has with the value. */
  readonly options: ReadonlyArray<readonly [value: string, text: string, count?: string | undefined]>
  readonly chosen: string | undefined
  /** The list with a value of this filter; with none for "". */
  readonly hrefOf: (value: string) => string
}

/** One filter of a list, applied at once: each value is a link, and the chosen one leads back to the list without it. */
export const Chips = ({ chosen, hrefOf, label, options }: ChipsProps) => (
  <ul class="chips" aria-label={label}>
    {options.map(([value, text, count]) =>
      value === chosen ? (
        <li key={value}>
          <a aria-current="true" href={hrefOf("")}>
            {[text, count].join(" ").trim()}
            {value === "" ? null : (
              <>
                {" "}
                <Mark of="cross" />
                <span class="visually-hidden">: take away</span>
              </>
            )}
          </a>
        </li>
      ) : (
        <li key={value}>
          <a href={hrefOf(value)}>{[text, count].join(" ").trim()}</a>
        </li>
      )
    )}
  </ul>
)
