//! The guard as a layer.

use ctx_core::{ContextView, Layer, Prepared, Result, Tokens, TurnContext};

use crate::{Config, ContextWindowSource, Window};

/// Refuses to assemble a request for a context window that is too small.
///
/// # Notes
///
/// The layer edits nothing. It is a second check: an outer loop that knows several models calls
/// [`resolve`](crate::resolve) first and uses a larger one, so that the layer never fails.
///
/// The window is the ledger's. The ledger does not record its source: set it with
/// [`WindowGuard::with_source`], or the error says `default`.
///
/// # Example
///
/// ```
/// use ctx_core::{
///     ContextView, Counter, ErrorKind, Layer, Timestamp, TokenLedger, Tokens, TurnContext,
/// };
/// use ctx_window_guard::{Config, ContextWindowSource, WindowGuard};
///
/// let guard = WindowGuard::new(Config::default()).with_source(ContextWindowSource::Model);
/// let turn = TurnContext::at(Timestamp(0));
/// let mut small = ContextView::new(TokenLedger::new(Counter::default(), Tokens(8_000), Tokens(0)));
/// let error = guard.apply(&mut small, None, &turn).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::WindowTooSmall);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct WindowGuard {
    config: Config,
    source: ContextWindowSource,
    native: Option<Tokens>,
}

impl WindowGuard {
    /// The layer's name.
    pub const ID: &'static str = "window-guard";

    /// Creates a guard with the given settings, for a window from the default.
    pub fn new(config: Config) -> Self {
        Self { config, source: ContextWindowSource::Default, native: None }
    }

    /// Sets the source of the window size.
    pub fn with_source(mut self, source: ContextWindowSource) -> Self {
        self.source = source;
        self
    }

    /// Sets the model's native window, the base of the proportional rule's shares.
    pub fn with_native_window(mut self, tokens: Tokens) -> Self {
        self.native = Some(tokens);
        self
    }
}

impl Layer for WindowGuard {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        let tokens = view.ledger().window();
        Ok(Window::new(tokens, self.source, self.native, &self.config).check()?)
    }
}
