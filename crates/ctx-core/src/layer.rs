//! Layers: the pieces an engine is made of.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{CompactRequest, CompactResult, ContextView, IdSource, Profile, Result, Timestamp};

/// What a layer knows of the turn it is called in.
#[derive(Clone)]
pub struct TurnContext {
    /// The time of the request.
    pub now: Timestamp,
    /// When this session's previous request was sent, and so when the provider's cache was last
    /// touched. `None` before the first.
    pub last_request: Option<Timestamp>,
    /// Where fresh ids come from.
    pub ids: Arc<dyn IdSource>,
    /// Whose defaults are in force.
    pub profile: Profile,
}

impl fmt::Debug for TurnContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnContext")
            .field("now", &self.now)
            .field("last_request", &self.last_request)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// What [`Layer::prepare`] found, handed to [`Layer::apply`].
pub type Prepared = Box<dyn Any + Send>;

/// Work that must be awaited before a layer can be applied. It owns what it needs: no view is held
/// across an await, because the future cannot borrow one.
pub type Pending = Pin<Box<dyn Future<Output = Result<Prepared>> + Send>>;

/// A compaction under way. Like [`Pending`] it owns what it needs.
pub type PendingCompaction = Pin<Box<dyn Future<Output = Result<CompactResult>> + Send>>;

/// One layer of defence.
///
/// # Notes
///
/// `apply` is synchronous and pure but for its edits of the view: the same view, turn and prepared
/// value give the same edits. A layer may not count on running alone, first or last.
///
/// # Example
///
/// ```
/// use ctx_core::{ContextView, Layer, Prepared, Result, Role, TurnContext};
///
/// /// Keeps bash runs away from the model.
/// struct NoBash;
///
/// impl Layer for NoBash {
///     fn id(&self) -> &'static str {
///         "no-bash"
///     }
///     fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
///         for at in 0..view.len() {
///             if view.node(at).role() == &Role::BashExecution {
///                 view.drop(at, self.id(), "not for the model");
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Layer: Send + Sync {
    /// The layer's name, as it stands in the manifest.
    fn id(&self) -> &'static str;

    /// Looks at the view and returns what must be awaited (a search, a model call), or `None`.
    fn prepare(&self, view: &ContextView, turn: &TurnContext) -> Option<Pending> {
        let _ = (view, turn);
        None
    }

    /// Edits the view.
    fn apply(
        &self,
        view: &mut ContextView,
        prepared: Option<Prepared>,
        turn: &TurnContext,
    ) -> Result<()>;

    /// Makes the session smaller for good, or `None` where the layer does not do such things.
    fn compact(&self, request: &CompactRequest) -> Option<PendingCompaction> {
        let _ = request;
        None
    }

    /// What a person should be told of what it did, each thing once.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
