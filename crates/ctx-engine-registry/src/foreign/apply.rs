//! Applies a checked answer.

use std::borrow::Cow;

use ctx_core::{ContextView, Result};

use super::CheckedPlan;

/// Applies the edits of a checked answer to a view, with the engine's id as their layer. Returns
/// the text to append to the system prompt.
///
/// # Errors
///
/// Errors of an edit. They cannot occur with the view that the answer was checked against.
pub fn apply(checked: CheckedPlan, view: &mut ContextView, engine: &str) -> Result<Option<String>> {
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
    // From the end, so that earlier positions stay valid.
    for addition in checked.additions.into_iter().rev() {
        let at = view.insert(addition.before, addition.entry, layer(), reason())?;
        if addition.pinned {
            view.pin(at, layer(), reason());
        }
    }
    Ok(checked.system_prompt_addition)
}
