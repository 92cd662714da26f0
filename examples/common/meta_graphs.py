"""Bytes of a MetaGraph, the same at every run. For TensorFlow 1.15."""

from tensorflow.core.protobuf.control_flow_pb2 import WhileContextDef


def serialized(tf, graph):
    """Returns the MetaGraph of a graph as bytes.

    Args:
      tf: TensorFlow 1.15.
      graph: The `tf.Graph`.
    """
    # Attributes at their default are left out: a later TensorFlow then needs to know only those
    # that matter.
    exported = tf.train.export_meta_graph(graph=graph, clear_devices=True, strip_default_attrs=True)
    # Maps (attributes, collections, names in loop contexts) come in any order unless asked for.
    contexts = exported.collection_def["while_context"].bytes_list.value
    for index, context in enumerate(contexts):
        contexts[index] = WhileContextDef.FromString(context).SerializeToString(deterministic=True)
    return exported.SerializeToString(deterministic=True)
