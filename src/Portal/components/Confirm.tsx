import { blank, PostForm, type PostFormProps } from "./Form.tsx"

export interface ConfirmProps extends Pick<PostFormProps, "action" | "csrf" | "submit"> {
  readonly id: string
  /** The page to which the other link leads. */
  readonly back: string
}

/** The last step before what cannot be undone: the page has said what it is. */
export const Confirm = ({ back, id, ...form }: ConfirmProps) => (
  <PostForm of={blank(id)} {...form} dangerous>
    <p>
      <a href={back}>Keep it</a>
    </p>
  </PostForm>
)
