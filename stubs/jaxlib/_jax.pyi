"""The runtime. What differs between its versions is looked up by name, so ``xc`` is of any type."""

from typing import Any

class Device: ...
class CompileOnlyPyClient: ...

ArrayImpl: Any
DeviceList: Any
GSPMDSharding: Any
JaxRuntimeError: Any
array_result_handler: Any
