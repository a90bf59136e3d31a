//! The settings in `sessions.json` for one session alone.

use std::sync::Arc;

use ctx_core::ChatModel;
use ctx_session::SessionEntry;

use super::SessionPool;
use crate::models::ModelChain;

/// The settings of a session.
pub(crate) struct SessionOverrides {
    /// The models that answer; the model set for the session comes first.
    pub(crate) models: Vec<Arc<dyn ChatModel>>,
    /// The thinking level.
    pub(crate) thinking: Option<String>,
    /// Whether answers are stored and not shown.
    pub(crate) is_muted: bool,
}

impl SessionOverrides {
    /// Reads the settings of an entry. Unavailable ones are reported as notices.
    pub(super) fn of(pool: &SessionPool, entry: &SessionEntry, notices: &mut Vec<String>) -> Self {
        let mut models = pool.models.clone();
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
                None => match ModelChain::connect(&pool.config, std::slice::from_ref(&name)) {
                    Ok(chain) => {
                        models.splice(0..0, chain.into_iter().flat_map(|chain| chain.models));
                    }
                    Err(error) => {
                        notices.push(format!("the session's model is unavailable: {error}"));
                    }
                },
            }
        } else if let Some(provider) = &entry.provider_override {
            models.sort_by_key(|model| model.card().provider != *provider);
        }
        if let Some(profile) = &entry.auth_profile_override {
            let key = "the key of models.providers is used";
            notices.push(format!("authProfileOverride {profile:?} is ignored: {key}"));
        }
        Self {
            models,
            thinking: entry.thinking_level.clone(),
            is_muted: entry.send_policy.as_deref() == Some("deny"),
        }
    }
}
