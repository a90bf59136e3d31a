//! Carrying out an answer that was checked.

use std::borrow::Cow;

use ctx_core::{ContextView, Result};

use super::Checked;

/// Edits a view as a checked answer says, in the name of its engine. Returns what is to be added to
/// the system prompt.
///
/// # Errors
///
/// What an edit may give: none, on the view that the answer was checked against.
pub fn apply(checked: Checked, view: &mut ContextView, engine: &str) -> Result<Option<String>> {
    let layer = || Cow::<'static, str>::Owned(engine.to_owned());
    let reason = || Cow::<'static, str>::Owned(checked.reason.clone());
    for &at in &checked.drops {
        view.drop(at, layer(), reason());
    }
    for (at, form) in checked.forms {
        view.replace(at, form, layer(), reason())?;
    }
    for at in checked.pins {
        view.pin(at, layer(), reason());
    }
    // From the end, so that the positions before stay what they are.
    for addition in checked.additions.into_iter().rev() {
        let at = view.insert(addition.before, addition.entry, layer(), reason())?;
        if addition.pinned {
            view.pin(at, layer(), reason());
        }
    }
    Ok(checked.system_prompt_addition)
}
