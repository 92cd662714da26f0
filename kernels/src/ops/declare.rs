//! The macro by which each operation is declared, once.
//!
//! [`op!`] takes an operation's name, attributes and tensors in TensorFlow's order, each with its documentation. A tensor
//! has its type in the Rust API, and its shape in the symbols of [`Dim`](super::Dim). A word before the shape
//! is one of [`Word`](super::Word), and `A * T` before it a list, whose length is the attribute `A`.
//!
//! The macro makes
//!
//! * the operation's table entry, an [`Op`](super::Op), from which come TensorFlow's `OpDef`, its shape function and
//!   `help()`, the rewrites' positions, Python's table and the page of operations;
//! * the structs of array views that the Rust API takes, documented with their shapes, and what is checked of them
//!   ([`Tensors`](super::views::Tensors));
//! * `from_source`, which fills such a struct with tensors that come in the operation's order.
//!
//! An operation that works in the memory of some inputs has a struct of its own for these. Then the
//! structs are named first, and the tensors follow in blocks, because TensorFlow mixes both kinds.

/// Declares an operation: see the module's documentation. `<$i $(, $ei)?>`, `<$p $(, $ep)?>` and
/// `<$o $(, $eo)?>` are the structs' parameters: `<'a>` or `<'a, E>`.
macro_rules! op {
    (
        $(#[doc = $doc:expr])*
        static $OP:ident = $settings:tt;
        $(#[$inputs_doc:meta])*
        struct $Inputs:ident<$i:lifetime $(, $ei:ident)?> $inputs:tt
        $(#[$outputs_doc:meta])*
        struct $Outputs:ident<$o:lifetime $(, $eo:ident)?> $outputs:tt
    ) => {
        op_static! { [$($doc),*] $OP $settings [$inputs] [] [$outputs] }

        views_struct! { $(#[$inputs_doc])* $Inputs<$i $(, $ei)?> $inputs }
        views_struct! { $(#[$outputs_doc])* #[derive(Debug)] $Outputs<$o $(, $eo)?> $outputs }

        impl $(<$ei>)? $crate::ops::views::Tensors for $Inputs<'_ $(, $ei)?> {
            fn with_views<R>(&self, read: impl FnOnce(&[$crate::ops::views::Views<'_>]) -> R) -> R {
                read(&views!(self $inputs))
            }
        }

        impl $(<$eo>)? $crate::ops::views::Tensors for $Outputs<'_ $(, $eo)?> {
            fn with_views<R>(&self, read: impl FnOnce(&[$crate::ops::views::Views<'_>]) -> R) -> R {
                read(&views!(self $outputs))
            }
        }
    };
    (
        $(#[doc = $doc:expr])*
        static $OP:ident = $settings:tt;
        $(#[$inputs_doc:meta])*
        struct $Inputs:ident<$i:lifetime $(, $ei:ident)?>;
        $(#[$in_place_doc:meta])*
        struct $InPlace:ident<$p:lifetime $(, $ep:ident)?>;
        $(#[$outputs_doc:meta])*
        struct $Outputs:ident<$o:lifetime $(, $eo:ident)?>;
        $(inputs $inputs:tt $(in_place $in_place:tt)?)+
        outputs $outputs:tt
    ) => {
        op_static! {
            [$($doc),*] $OP $settings [$($inputs $($in_place)?)+] [$($($in_place)?)+] [$outputs]
        }

        views_struct! { $(#[$inputs_doc])* $Inputs<$i $(, $ei)?> $($inputs)+ }
        views_struct! { $(#[$in_place_doc])* #[derive(Debug)] $InPlace<$p $(, $ep)?> $($($in_place)?)+ }
        views_struct! { $(#[$outputs_doc])* #[derive(Debug)] $Outputs<$o $(, $eo)?> $outputs }

        impl $(<$ei>)? $crate::ops::views::Tensors
            for (&$Inputs<'_ $(, $ei)?>, &$InPlace<'_ $(, $ep)?>)
        {
            fn with_views<R>(&self, read: impl FnOnce(&[$crate::ops::views::Views<'_>]) -> R) -> R {
                let (inputs, in_place) = self;
                read(&views!($(inputs $inputs $(in_place $in_place)?)+))
            }
        }

        impl $(<$eo>)? $crate::ops::views::Tensors for $Outputs<'_ $(, $eo)?> {
            fn with_views<R>(&self, read: impl FnOnce(&[$crate::ops::views::Views<'_>]) -> R) -> R {
                read(&views!(self $outputs))
            }
        }
    };
}

/// The table entry of an operation.
macro_rules! op_static {
    (
        [$($doc:expr),*] $OP:ident {
            name: $name:literal, types: [$($type:ident),+], is_stock: $is_stock:literal
            $(, attributes: $attributes:tt)? $(,)?
        }
        [$($inputs:tt)+] [$($in_place:tt)*] [$($outputs:tt)+]
    ) => {
        $(#[doc = $doc])*
        pub static $OP: $crate::ops::Op = $crate::ops::Op {
            name: $name,
            inputs: &tensors!($($inputs)+),
            in_place: &names!($($in_place)*),
            outputs: &tensors!($($outputs)+),
            attributes: &attributes!($($attributes)?),
            types: &[$($crate::ops::DataType::$type),+],
            is_stock: $is_stock,
            is_stateful: false,
            doc: &[$($doc),*],
        };
    };
}

/// The attributes of an operation.
macro_rules! attributes {
    () => { [] };
    ({$($(#[doc = $doc:expr])* $name:ident: $kind:literal),+ $(,)?}) => {
        [$($crate::ops::Attribute { name: stringify!($name), kind: $kind, doc: &[$($doc),*] }),+]
    };
}

/// A struct of views, one for each tensor of some blocks, and its `from_source`.
macro_rules! views_struct {
    (
        $(#[$meta:meta])*
        $Struct:ident<$($g:tt),+>
        $({$(
            $(#[$doc:meta])* $field:ident: $type:ty = $($word:ident $(* $of:ident)?)? [$($dim:ident $(($n:literal))?),*]
        ),+ $(,)?})+
    ) => {
        $(#[$meta])*
        pub struct $Struct<$($g),+> {
            $($(
                $(#[$doc])*
                #[doc = ""]
                #[doc = shape!($($dim $(($n))?),*)]
                pub $field: $type,
            )+)+
        }

        impl<$($g),+> $Struct<$($g),+> {
            /// The struct whose fields are the tensors that `source` has next, in their order.
            pub fn from_source<S>(source: &mut S) -> Self
            where
                $($(S: $crate::ops::Source<$type>,)+)+
            {
                $Struct { $($($field: source.next()),+),+ }
            }
        }
    };
}

/// The table entries of the tensors of some blocks.
macro_rules! tensors {
    ($({$(
        $(#[doc = $doc:expr])* $field:ident: $type:ty = $($word:ident $(* $of:ident)?)? [$($dim:ident $(($n:literal))?),*]
    ),+ $(,)?})+) => {
        [$($($crate::ops::Tensor {
            name: stringify!($field),
            dims: &[$($crate::ops::Dim::$dim $(($n))?),*],
            doc: &[$($doc),*],
            ..word!($($word $(* $of)?)?)
        }),+),+]
    };
}

/// What a word before a shape says of a tensor.
macro_rules! word {
    () => {
        word!(T)
    };
    ($word:ident) => {
        $crate::ops::Tensor::of($crate::ops::Word::$word)
    };
    ($list:ident * $word:ident) => {
        $crate::ops::Tensor { list: Some(stringify!($list)), ..word!($word) }
    };
}

/// The names of the tensors of some blocks.
macro_rules! names {
    ($({$(
        $(#[$doc:meta])* $field:ident: $type:ty = $($word:ident)? [$($dim:ident $(($n:literal))?),*]
    ),+ $(,)?})*) => {
        [$($(stringify!($field)),+),*]
    };
}

/// What is checked of the fields of some structs: those of a block, of the struct named before it.
macro_rules! views {
    ($($from:ident {$(
        $(#[$doc:meta])* $field:ident: $type:ty = $($word:ident $(* $of:ident)?)? [$($dim:ident $(($n:literal))?),*]
    ),+ $(,)?})+) => {
        [$($($crate::ops::views::Views::from(&$from.$field)),+),+]
    };
}

/// A shape for the documentation.
macro_rules! shape {
    () => { "A scalar, unless the text says otherwise." };
    (Optional($n:literal)) => { "Shape: `[cell_size]`; any length where it is not used." };
    ($dim:ident $(($n:literal))? $(, $more:ident $(($m:literal))?)*) => {
        concat!(
            "Shape: `[",
            dim_name!($dim $(($n))?),
            $(", ", dim_name!($more $(($m))?),)*
            "]`."
        )
    };
}

/// A dimension as documentation and messages name it.
macro_rules! dim_name {
    (Time) => {
        "time"
    };
    (TimeOrOne) => {
        "time"
    };
    (TimeOrNone) => {
        "time"
    };
    (Batch) => {
        "batch"
    };
    (Input) => {
        "input_size"
    };
    (Cell) => {
        "cell_size"
    };
    (Output) => {
        "output_size"
    };
    (InputCell) => {
        "input_size + cell_size"
    };
    (InputCellOrNone) => {
        "input_size + cell_size"
    };
    (InputOutput) => {
        "input_size + output_size"
    };
    (Gates($n:literal)) => {
        concat!($n, " * cell_size")
    };
    (Any($name:literal)) => {
        $name
    };
}
