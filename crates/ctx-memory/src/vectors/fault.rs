//! What can be wrong with a file of vectors.

/// What was wrong with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorFault {
    /// It is no VMEM file, or of another version: nothing of it is used.
    Foreign {
        /// What it is instead, in words.
        found: String,
    },
    /// Another embedder made it, or vectors of another length: nothing of it is used.
    OtherEmbedder {
        /// Which, where that is known.
        made_by: Option<String>,
        /// The length of its vectors.
        dimensions: usize,
    },
    /// It is shorter than its count says, or ends within a row: what is whole is used.
    Truncated {
        /// Rows that the header tells of.
        count: usize,
        /// Rows that are there.
        whole: usize,
    },
    /// Rows that hold what is no number: they are left out.
    NotFinite {
        /// How many.
        rows: usize,
    },
}

impl std::fmt::Display for VectorFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign { found } => write!(f, "the vectors are made anew: {found}"),
            Self::OtherEmbedder { made_by: Some(name), dimensions } => {
                write!(f, "the vectors are made anew: those there are by {name}, {dimensions} long")
            }
            Self::OtherEmbedder { made_by: None, dimensions } => {
                write!(
                    f,
                    "the vectors are made anew: those there are {dimensions} long, by whom is not known"
                )
            }
            Self::Truncated { count, whole } => {
                write!(f, "the file of vectors is damaged: {whole} of {count} are used")
            }
            Self::NotFinite { rows } => {
                write!(f, "{rows} vectors are made anew: they hold what is no number")
            }
        }
    }
}
