/** The value of a cookie; undefined where the request has none of that name. */
export const cookieOf = (header: string | undefined, name: string): string | undefined => {
  const part = (header ?? "").split(";").find((each) => each.trimStart().startsWith(`${name}=`))
  return part?.trim().slice(name.length + 1)
}
