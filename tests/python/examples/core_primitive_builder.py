from netcl.core.kernels.primitives import PrimitiveBuilder, WorkGroupTuner
builder = PrimitiveBuilder(dtype="float", tuner=WorkGroupTuner())
spec = builder.elementwise_spec(name="mul_add", arity=2, expression="MUL(ADD(v0, v1), 2.0f)")
# Returns a KernelSpec; pass a cl.Context to .build() to compile it.
