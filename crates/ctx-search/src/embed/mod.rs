//! Text embeddings: the text that is embedded, and the local embedders.

mod hash;
mod model;
mod text;
#[cfg(feature = "transformer")]
mod transformer;

pub use hash::HashEmbedder;
pub use model::{VectorModel, vectors_of};
pub use text::{LONGEST, embedded_text};
#[cfg(feature = "transformer")]
pub use transformer::TransformerEmbedder;
