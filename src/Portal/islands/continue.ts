/** Long work goes on by itself: a form that asks for its next part is submitted as soon as it is shown. */
document.querySelector<HTMLFormElement>("form[data-continues]")?.requestSubmit()

export {}
