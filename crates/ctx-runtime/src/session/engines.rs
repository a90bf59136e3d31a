//! The engines of open sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use ctx_core::ContextEngine;
use ctx_session::key::SessionKey;

use crate::sync::locked;

/// The engine of each open session. Only the session keeps it alive.
#[derive(Default)]
pub(crate) struct SessionEngines {
    open: Mutex<OpenEngines>,
}

#[derive(Default)]
struct OpenEngines {
    engines: HashMap<SessionKey, Weak<dyn ContextEngine>>,
    /// At this number of engines, the engines of closed sessions are removed.
    sweep_at: usize,
}

impl SessionEngines {
    /// Records the engine of a session.
    pub(crate) fn note(&self, key: &SessionKey, engine: &Arc<dyn ContextEngine>) {
        let mut open = locked(&self.open);
        if open.engines.len() >= open.sweep_at {
            open.engines.retain(|_, engine| engine.strong_count() > 0);
            open.sweep_at = 2 * open.engines.len() + 16;
        }
        open.engines.insert(key.clone(), Arc::downgrade(engine));
    }

    /// Returns the engine of a session, if it is open.
    pub(crate) fn of(&self, key: &SessionKey) -> Option<Arc<dyn ContextEngine>> {
        locked(&self.open).engines.get(key).and_then(Weak::upgrade)
    }
}
