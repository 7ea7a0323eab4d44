/* Nothing: on disk, or at a plain host, these pages have only each other. `attentest serve` answers this name
   with a script of its own, which links its live page; so no page differs, and no link leads nowhere. */
"use strict";
