//! The model that makes vectors, from configuration.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{Embedder, Error, ErrorKind, Result};
use ctx_engine_registry::{Config, Models};
use ctx_memory::{EmbeddingModel, VectorModel};
use ctx_model::{Client, TokioTimer, connect_embedder};

use crate::writers::providers;

/// The model that `agents.defaults.memoryContext.embeddingModel` names, with the clock that bounds
/// it; `None` for `hash`, which needs none. A server is not asked yet: that it is down is found when
/// a vector is wanted.
///
/// # Errors
///
/// A source that is missing or names nothing, a folder without a sound model, a build that cannot
/// run one. A host says so, and goes on with `hash`.
pub fn vector_model(config: &Config, memory: &ctx_memory::Config) -> Result<Option<VectorModel>> {
    let source = memory.embedding_source.as_deref().map(str::trim).filter(|s| !s.is_empty());
    let embedder: Arc<dyn Embedder> = match memory.embedding_model {
        EmbeddingModel::Hash => return Ok(None),
        EmbeddingModel::Transformer => transformer(Path::new(named(source, FOLDER)?))?,
        EmbeddingModel::Http => {
            let dimensions = memory.embedding_dimensions.map(|n| n as usize);
            http_embedder(config, named(source, MODEL)?, dimensions)?
        }
    };
    Ok(Some(VectorModel::new(embedder, Arc::new(TokioTimer::default()))))
}

const FOLDER: &str = "set it to the folder of the model: config.json, tokenizer.json and \
                      model.safetensors";
const MODEL: &str = "set it to a model, such as ollama/nomic-embed-text or \
                     openai/text-embedding-3-small";

fn named<'a>(source: Option<&'a str>, hint: &str) -> Result<&'a str> {
    source.ok_or_else(|| {
        Error::new(ErrorKind::Config, "the embedding model has no source")
            .with("key", "agents.defaults.memoryContext.embeddingSource")
            .hint(hint)
    })
}

/// A model behind a server, by its name: `provider/name`, as in `models.providers`.
///
/// # Errors
///
/// A name of no provider, a key that is missing, or vectors of unknown length.
pub fn http_embedder(
    config: &Config,
    name: &str,
    dimensions: Option<usize>,
) -> Result<Arc<dyn Embedder>> {
    let models: Models = config.section()?;
    let providers = providers(&models)?;
    let client = Arc::new(Client::default());
    let connected = connect_embedder(name, dimensions, &providers, &client);
    let embedder = connected.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput if dimensions.is_none() => {
            error.hint("set agents.defaults.memoryContext.embeddingDimensions")
        }
        _ => error,
    })?;
    Ok(Arc::new(embedder))
}

#[cfg(feature = "transformer")]
fn transformer(folder: &Path) -> Result<Arc<dyn Embedder>> {
    Ok(Arc::new(ctx_memory::TransformerEmbedder::open(&at_home(folder))?))
}

/// `~` is the home folder, as in other paths of the configuration.
#[cfg(feature = "transformer")]
fn at_home(folder: &Path) -> std::path::PathBuf {
    match (folder.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => folder.to_owned(),
    }
}

#[cfg(not(feature = "transformer"))]
fn transformer(_: &Path) -> Result<Arc<dyn Embedder>> {
    Err(Error::new(ErrorKind::Capability, "this build of ctx cannot run an embedding model")
        .with("key", "agents.defaults.memoryContext.embeddingModel")
        .hint("build it with `--features transformer`, or take `http` or `hash`"))
}
