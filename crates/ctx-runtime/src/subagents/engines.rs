//! The engines of sessions that are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use ctx_core::ContextEngine;
use ctx_session::key::SessionKey;

use crate::session::locked;

/// The engine that each open session is run with. It is held by the session alone.
#[derive(Default)]
pub(crate) struct Engines {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    engines: HashMap<SessionKey, Weak<dyn ContextEngine>>,
    /// When there are so many, those whose sessions are closed are taken out.
    sweep_at: usize,
}

impl Engines {
    /// A session is run with this one now.
    pub(crate) fn note(&self, key: &SessionKey, engine: &Arc<dyn ContextEngine>) {
        let mut known = locked(&self.known);
        if known.engines.len() >= known.sweep_at {
            known.engines.retain(|_, engine| engine.strong_count() > 0);
            known.sweep_at = 2 * known.engines.len() + 16;
        }
        known.engines.insert(key.clone(), Arc::downgrade(engine));
    }

    /// The engine of a session, if it is open.
    pub(crate) fn of(&self, key: &SessionKey) -> Option<Arc<dyn ContextEngine>> {
        locked(&self.known).engines.get(key).and_then(Weak::upgrade)
    }
}
