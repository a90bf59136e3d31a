//! What `sessions.json` sets for one session alone.

use std::sync::Arc;

use ctx_core::ChatModel;
use ctx_session::store::SessionEntry;

use crate::Chain;
use crate::runtime::Inner;

/// The settings of a session.
pub(crate) struct OwnSettings {
    /// The models that answer, the session's own first.
    pub(crate) models: Vec<Arc<dyn ChatModel>>,
    /// How much they are to think.
    pub(crate) thinking: Option<String>,
    /// Whether answers are stored and not shown.
    pub(crate) is_muted: bool,
}

impl OwnSettings {
    /// The settings of an entry. What cannot be had is a notice.
    pub(super) fn of(inner: &Inner, entry: &SessionEntry, notices: &mut Vec<String>) -> Self {
        let mut models = inner.models.clone();
        if let Some(id) = &entry.model_override {
            let provider = entry.provider_override.iter().map(|provider| format!("{provider}/"));
            let name = provider.fold(id.clone(), |id, provider| match id.starts_with(&provider) {
                true => id,
                false => provider + &id,
            });
            let is_it =
                |model: &Arc<dyn ChatModel>| model.card().name == name || model.card().id == name;
            match models.iter().position(is_it) {
                Some(at) => models[..=at].rotate_right(1),
                None => match Chain::connect(&inner.config, std::slice::from_ref(&name)) {
                    Ok(chain) => {
                        models.splice(0..0, chain.into_iter().flat_map(|chain| chain.models));
                    }
                    Err(error) => notices.push(format!("the session's model is left out: {error}")),
                },
            }
        } else if let Some(provider) = &entry.provider_override {
            models.sort_by_key(|model| model.card().provider != *provider);
        }
        if let Some(profile) = &entry.auth_profile_override {
            let key = "the key of models.providers is used";
            notices.push(format!("authProfileOverride {profile:?} is not obeyed: {key}"));
        }
        Self {
            models,
            thinking: entry.thinking_level.clone(),
            is_muted: entry.send_policy.as_deref() == Some("deny"),
        }
    }
}
