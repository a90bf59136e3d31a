//! Selects the model of the chain that answers.

use ctx_core::{Error, ErrorKind, Result};

use super::Turn;
use crate::host::{NoticeKind, layer};

impl Turn<'_> {
    /// Selects the first model whose window is large enough.
    pub(super) async fn select_model(&mut self) -> Result<()> {
        self.select_model_from(0, None).await
    }

    /// Continues with the next model after a failure. Returns the error if there is none.
    pub(super) async fn fail_over(&mut self, error: Error) -> Result<()> {
        self.select_model_from(self.model + 1, Some(error)).await
    }

    async fn select_model_from(&mut self, from: usize, mut error: Option<Error>) -> Result<()> {
        let pool = self.pool;
        let mut failed = from.checked_sub(1);
        for at in from..self.session.overrides.models.len() {
            let span = tracing::debug_span!("guard", model = self.name(at));
            let prepared = Box::pin(self.session.prepare(pool, at, self.tools.specs()));
            match tracing::Instrument::instrument(prepared, span).await {
                Ok(()) => {
                    self.model = at;
                    if let (Some(failed), Some(error)) = (failed, &error) {
                        pool.layers.action(layer::FAILOVER, "fail");
                        let (name, failed) = (self.name(at), self.name(failed));
                        let words = format!("{name} answers instead of {failed}: {error}");
                        self.notify(NoticeKind::Failover, words);
                    }
                    self.notify_warnings();
                    return Ok(());
                }
                Err(refused) if refused.kind() == ErrorKind::WindowTooSmall => {
                    pool.layers.action(layer::WINDOW_GUARD, "refuse");
                    // The user should see the error of the first model.
                    failed = failed.or(Some(at));
                    error = error.or(Some(refused));
                }
                Err(refused) => return Err(refused),
            }
        }
        Err(error.unwrap_or_else(|| {
            Error::new(ErrorKind::NotFound, "missing model").hint("give one with Builder::model")
        }))
    }

    fn name(&self, at: usize) -> String {
        self.session.overrides.models[at].card().name.clone()
    }

    /// Shows the warnings of setup, engine and layers, each only once.
    pub(super) fn notify_warnings(&mut self) {
        let Some(setup) = &mut self.session.setup else { return };
        let small = setup.resolved.warning();
        let mut warnings = std::mem::take(&mut setup.warnings);
        warnings.extend(setup.engine.take_warnings());
        warnings.extend(setup.memory.warnings());
        for words in warnings {
            let kind = match Some(&words) == small.as_ref() {
                true => NoticeKind::Window,
                false => NoticeKind::Engine,
            };
            self.notify(kind, words);
        }
    }
}
